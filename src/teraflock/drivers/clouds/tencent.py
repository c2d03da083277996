"""Tencent Cloud CVM: virtual machines with cloud-init, launch tokens, stop and start, and spot. API 2017-03-12.

Every answer has status 200: an error is in the body. A launch names a zone, so all zones of the region that sell the
type are tried in turn. `ActionTimer` ends a machine at a time.
"""

import base64
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from teraflock.drivers.clouds.calls import Asking, CloudReply
from teraflock.drivers.clouds.errors import CannotDo, ErrorCodes
from teraflock.drivers.clouds.marks import MARK, Boot, read_tags
from teraflock.drivers.clouds.model import CURRENCY_OPTION, DISK_OPTION, CloudApi, Pace
from teraflock.drivers.clouds.notices import TENCENT_NOTICE
from teraflock.drivers.clouds.signatures import TencentSigner
from teraflock.drivers.clouds.sound import time_of
from teraflock.drivers.clouds.tencent_types import MODES, action, offered, read_type
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import Capability, MachineType, Seen

USER_DATA_BYTES_MAX: Final = 16_384
PAGE: Final = 100
SEEN: Final = {
    "PENDING": Seen.PENDING,
    "RUNNING": Seen.RUNNING,
    "STARTING": Seen.PENDING,
    "STOPPING": Seen.PENDING,
    "REBOOTING": Seen.PENDING,
    "STOPPED": Seen.STOPPED,
    "LAUNCH_FAILED": Seen.BROKEN,
    "SHUTDOWN": Seen.PENDING,
    "TERMINATING": Seen.PENDING,
}


class TencentCloud(CloudApi):
    kind = "tencent"
    title = "Tencent Cloud"
    signs = TencentSigner
    base_url = "https://cvm.tencentcloudapi.com"
    services: ClassVar = {"vpc": "https://vpc.tencentcloudapi.com"}
    currency = "CNY"
    login = "ubuntu"
    pace = Pace(call_seconds=0.2, launch_seconds=0.5)
    capabilities = frozenset({Capability.STOP})
    types_age_max = timedelta(minutes=10)
    notice = TENCENT_NOTICE
    has_time_limit = True
    codes = ErrorCodes(
        no_room=[
            "ResourcesSoldOut.*",
            "ResourceInsufficient.*",
            "InvalidParameterValue.InsufficientPrice",
            "InvalidParameterValue.InsufficientOffering",
            "InvalidZone.MismatchRegion",
        ],
        quota=["InstancesQuotaLimitExceeded", "LimitExceeded.*"],
        money=["InvalidAccount.InsufficientBalance", "InvalidAccount.UnpaidOrder"],
        busy=["RequestLimitExceeded*", "InternalServerError", "InternalError", "Mutex*"],
        access=["AuthFailure*", "UnauthorizedOperation*"],
    )
    options: ClassVar = {
        "regions": "Regions to use, separated by commas. Default: `ap-guangzhou,ap-shanghai`",
        "image": "The image id. Default: the newest public Ubuntu image for the type",
        "disk_gb": f"{DISK_OPTION}. Default: 100",
        "currency": f"{CURRENCY_OPTION}. Default: `CNY`",
    }
    defaults: ClassVar = {"regions": "ap-guangzhou,ap-shanghai", "disk_gb": "100"}

    def status(self, reply: CloudReply) -> int:
        code = self.said(reply)[0] if self._has_error(reply) else ""
        if not code:
            return reply.status
        return 429 if code.startswith("RequestLimitExceeded") else 400

    def _has_error(self, reply: CloudReply) -> bool:
        response = reply.body.get("Response") if isinstance(reply.body, dict) else None
        return isinstance(response, dict) and "Error" in response

    def check(self) -> Asking[str]:
        yield action(self.regions[0], "DescribeInstances", {"Limit": 1})
        return f"Tencent Cloud accepts the key; regions: {', '.join(self.regions)}"

    def types(self) -> Asking[list[MachineType]]:
        found: dict[tuple[str, str], MachineType] = {}
        for region in self.regions:
            for each in (yield from offered(region)):
                made = read_type(region, each, found.get((each["InstanceType"], region)), self)
                if made is not None:
                    found[made.name, region] = made
        return list(found.values())

    def machines(self, mark: str) -> Asking[list[Remote]]:
        found: list[Remote | None] = []
        for region in self.regions:
            offset, total = 0, 1
            while offset < total:
                filters = [{"Name": f"tag:{MARK}", "Values": [mark]}]
                body = {"Filters": filters, "Offset": offset, "Limit": PAGE}
                reply = yield action(region, "DescribeInstances", body)
                listed = reply.body["Response"]["InstanceSet"]
                found += [self._remote(mark, region, each) for each in listed]
                offset, total = offset + PAGE, int(reply.body["Response"]["TotalCount"])
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        rental = boot.rental
        if len(boot.cloud_config.encode()) > USER_DATA_BYTES_MAX:
            raise CannotDo(
                f"Tencent Cloud accepts {USER_DATA_BYTES_MAX >> 10} KB of first-boot files",
                hint="Let a short user-data script download the rest",
            )
        for_sale = yield from offered(rental.region, rental.type)
        zones = sorted(
            {each["Zone"] for each in for_sale if MODES[each["InstanceChargeType"]] == rental.mode}
        )
        image = self.option("image") or (yield from self._image(boot))
        group = yield from self._security_group(rental.region, boot.mark)

        def rent_in(zone: str) -> Asking[Remote]:
            body = self._body(boot, zone, image, group)
            reply = yield action(rental.region, "RunInstances", body, act="launch")
            (id,) = reply.body["Response"]["InstanceIdSet"]
            spot = rental.mode == "spot"
            return self.remote(f"{rental.region}/{id}", boot.token, Seen.PENDING, zone=zone, is_spot=spot)

        return (
            yield from self.in_first_with_room(
                [rental.zone] if rental.zone else zones,
                rent_in,
                f"`{rental.type}` is not for sale in {rental.region}",
            )
        )

    def _image(self, boot: Boot) -> Asking[str]:
        filters = [
            {"Name": "image-type", "Values": ["PUBLIC_IMAGE"]},
            {"Name": "platform", "Values": ["Ubuntu"]},
        ]
        body = {"Filters": filters, "InstanceType": boot.rental.type, "Limit": PAGE}
        reply = yield action(boot.rental.region, "DescribeImages", body)
        images = sorted(reply.body["Response"]["ImageSet"], key=lambda each: str(each.get("CreatedTime", "")))
        if not images:
            raise CannotDo(f"Tencent Cloud has no Ubuntu image for `{boot.rental.type}`", hint="Set `image`")
        return str(images[-1]["ImageId"])

    def _security_group(self, region: str, mark: str) -> Asking[str]:
        """The id of our security group, which admits SSH only, created if it does not exist."""
        name = f"teraflock-{mark}"
        query = {"Filters": [{"Name": "security-group-name", "Values": [name]}]}
        found = yield action(region, "DescribeSecurityGroups", query, service="vpc")
        if listed := found.body["Response"]["SecurityGroupSet"]:
            return str(listed[0]["SecurityGroupId"])
        body = {"GroupName": name, "GroupDescription": "SSH to machines of Teraflock"}
        made = yield action(region, "CreateSecurityGroup", body, act="change", service="vpc")
        id = str(made.body["Response"]["SecurityGroup"]["SecurityGroupId"])
        both = {"CidrBlock": "0.0.0.0/0", "Action": "ACCEPT"}
        rules = {"Ingress": [{"Protocol": "TCP", "Port": "22", **both}]}
        yield action(
            region,
            "CreateSecurityGroupPolicies",
            {"SecurityGroupId": id, "SecurityGroupPolicySet": rules},
            act="change",
            service="vpc",
        )
        everything = {"Egress": [{"Protocol": "ALL", "Port": "ALL", **both}]}
        yield action(
            region,
            "CreateSecurityGroupPolicies",
            {"SecurityGroupId": id, "SecurityGroupPolicySet": everything},
            act="change",
            service="vpc",
        )
        return id

    def _body(self, boot: Boot, zone: str, image: str, group: str) -> dict[str, Any]:
        rental = boot.rental
        tags = [{"Key": name, "Value": value} for name, value in boot.tags.items()]
        limit = rental.price_limit_micros_per_hour
        most = {"MaxPrice": f"{(limit or 10**9) / 10**6:.6f}", "SpotInstanceType": "one-time"}
        spot = {
            "InstanceChargeType": "SPOTPAID",
            "InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": most},
        }
        address = {
            "InternetChargeType": "TRAFFIC_POSTPAID_BY_HOUR",
            "InternetMaxBandwidthOut": 100,
            "PublicIpAssigned": True,
        }
        return {
            "InstanceChargeType": "POSTPAID_BY_HOUR",
            "Placement": {"Zone": zone},
            "InstanceType": rental.type,
            "ImageId": image,
            "SystemDisk": {"DiskType": "CLOUD_PREMIUM", "DiskSize": self.disk_gb},
            "InternetAccessible": address,
            "InstanceCount": 1,
            "InstanceName": boot.machine.hostname,
            "SecurityGroupIds": [group],
            "ClientToken": f"{boot.token}-{zone}"[-64:],
            "TagSpecification": [{"ResourceType": "instance", "Tags": tags}],
            "UserData": base64.b64encode(boot.cloud_config.encode()).decode(),
            **(spot if rental.mode == "spot" else {}),
            **_timer(boot.ends_at),
        }

    def give_back(self, remote_id: str) -> Asking[None]:
        yield from self._act(remote_id, "TerminateInstances", {"ReleaseAddress": True})

    def stop(self, remote_id: str) -> Asking[None]:
        yield from self._act(remote_id, "StopInstances", {"StoppedMode": "STOP_CHARGING"})

    def start(self, remote_id: str) -> Asking[None]:
        yield from self._act(remote_id, "StartInstances", {})

    def _act(self, remote_id: str, name: str, more: dict[str, Any]) -> Asking[None]:
        region, _, id = remote_id.partition("/")
        body = {"InstanceIds": [id], **more}
        call = action(region, name, body, act="change", accepts=frozenset({400}))
        reply = yield call
        if self._has_error(reply) and self.said(reply)[0] != "InvalidInstanceId.NotFound":
            raise self.error(call, reply)

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        found: list[Leftover] = []
        name = f"teraflock-{mark}"
        for region in self.regions:
            query = {"Filters": [{"Name": "security-group-name", "Values": [name]}]}
            reply = yield action(region, "DescribeSecurityGroups", query, service="vpc")
            ids = [each["SecurityGroupId"] for each in reply.body["Response"]["SecurityGroupSet"]]
            found += [Leftover(kind="security-group", remote_id=f"{region}/{id}", name=name) for id in ids]
        return found

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        region, _, id = leftover.remote_id.partition("/")
        body = {"SecurityGroupId": id}
        accepts = frozenset({400})
        yield action(region, "DeleteSecurityGroup", body, act="change", accepts=accepts, service="vpc")

    def _remote(self, mark: str, region: str, each: Any) -> Remote | None:
        token = read_tags(mark, {tag["Key"]: tag["Value"] for tag in each.get("Tags") or ()})
        seen = SEEN.get(each["InstanceState"], Seen.PENDING)
        if not token:
            return None
        failed = each.get("LatestOperationState") == "FAILED" and seen == Seen.PENDING
        return self.remote(
            f"{region}/{each['InstanceId']}",
            token,
            Seen.BROKEN if failed else seen,
            address=(each.get("PublicIpAddresses") or [""])[0],
            doing=str(each.get("LatestOperationErrorMsg") or each["InstanceState"].lower()),
            zone=each["Placement"]["Zone"],
            type=each["InstanceType"],
            user=each.get("DefaultLoginUser") or self.login,
            since=time_of(each.get("CreatedTime")),
            is_spot=each.get("InstanceChargeType") == "SPOTPAID",
        )


def _timer(ends_at: datetime | None) -> dict[str, Any]:
    if ends_at is None:
        return {}
    return {
        "ActionTimer": {
            "TimerAction": "TerminateInstances",
            "ActionTime": ends_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    }
