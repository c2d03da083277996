"""Alibaba Cloud ECS: virtual machines with cloud-init, launch tokens, stop and start, and spot. API 2014-05-26.

Parameters are in the query, lists as `Tag.1.Key`. The operator names a virtual switch and a security group for each
region. Prices are read for the types in the option `types`. The listing says when a spot machine is taken back.
"""

import base64
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Final

from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import Asking, CloudCall
from teraflock.drivers.clouds.errors import CannotDo, ErrorCodes
from teraflock.drivers.clouds.marks import MARK, Boot, read_name, read_tags
from teraflock.drivers.clouds.model import CURRENCY_OPTION, DISK_OPTION, CloudApi, Pace, micros_of
from teraflock.drivers.clouds.notices import ALIBABA_NOTICE
from teraflock.drivers.clouds.signatures import AlibabaSigner
from teraflock.drivers.clouds.sound import time_of
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import Capability, MachineType, Seen

TYPES: Final = "ecs.gn6i-c4g1.xlarge,ecs.gn6v-c8g1.2xlarge,ecs.gn7i-c8g1.2xlarge,ecs.gn7e-c16g1.4xlarge"
USER_DATA_BYTES_MAX: Final = 32_768
SEEN: Final = {
    "Pending": Seen.PENDING,
    "Starting": Seen.PENDING,
    "Running": Seen.RUNNING,
    "Stopping": Seen.PENDING,
    "Stopped": Seen.STOPPED,
}
DISK: Final = "cloud_essd"
WITHOUT_REGION: Final = ("DescribeInstanceTypes", "DeleteDisk")
"""Actions that have no such parameter: the address says the region."""


def action(region: str, name: str, parameters: Mapping[str, str], **more: Any) -> CloudCall:
    headers = {"x-acs-action": name, "x-acs-version": "2014-05-26"}
    query = {**({} if name in WITHOUT_REGION else {"RegionId": region}), **parameters}
    return CloudCall(method="POST", path="/", headers=headers, query=query, region=region, **more)


class AlibabaCloud(CloudApi):
    kind = "alibaba"
    title = "Alibaba Cloud"
    signs = AlibabaSigner
    base_url = "https://ecs.{region}.aliyuncs.com"
    currency = "CNY"
    pace = Pace(call_seconds=0.2, launch_seconds=0.5)
    capabilities = frozenset({Capability.STOP})
    types_age_max = timedelta(hours=2)
    notice = ALIBABA_NOTICE
    has_time_limit = True
    codes = ErrorCodes(
        no_room=[
            "OperationDenied.NoStock",
            "Zone.NotOnSale",
            "out of usage",
            "InvalidResourceType.NotSupported",
        ],
        quota=["QuotaExceed*", "*.QuotaExceeded", "InstanceQuotaExceed*"],
        money=["InvalidAccountStatus.NotEnoughBalance", "Account.Arrearage", "InvalidPayMethod*"],
        busy=["Throttling*", "ServiceUnavailable", "InternalError"],
        access=[
            "InvalidAccessKeyId*",
            "SignatureDoesNotMatch",
            "Forbidden.RAM",
            "Forbidden.AccessKeyDisabled",
        ],
    )
    options: ClassVar = {
        "networks": "For each region a virtual switch and a security group that admits SSH:"
        " `REGION=VSWITCH/GROUP,…`. Required",
        "image": "The image id, or its family with NVIDIA drivers. Required",
        "types": f"Machine types to offer, separated by commas. Default: `{TYPES}`",
        "disk_gb": f"{DISK_OPTION}. Default: 100",
        "currency": f"{CURRENCY_OPTION}. Default: `CNY`",
    }
    defaults: ClassVar = {"types": TYPES, "disk_gb": "100"}

    @property
    def regions(self) -> list[str]:
        return list(self.pairs("networks"))

    def check(self) -> Asking[str]:
        self.needed("image")
        yield action(self.regions[0], "DescribeInstances", {"PageSize": "1"})
        return f"Alibaba Cloud accepts the key; regions: {', '.join(self.regions)}"

    def types(self) -> Asking[list[MachineType]]:
        names = [each.strip() for each in self.option("types").split(",") if each.strip()]
        listed = {f"InstanceTypes.{number}": name for number, name in enumerate(names, 1)}
        found: list[MachineType] = []
        for region in self.regions:
            reply = yield action(region, "DescribeInstanceTypes", listed)
            for each in reply.body["InstanceTypes"]["InstanceType"]:
                prices = yield from self._prices(region, each["InstanceTypeId"])
                if prices:
                    found.append(self._type(region, each, prices))
        return found

    def _type(self, region: str, each: Any, prices: Mapping[str, int]) -> MachineType:
        return self.machine_type(
            each["InstanceTypeId"],
            region,
            gpu=(str(each["GPUSpec"]), round(float(each.get("GPUMemorySize") or 0))),
            gpus=int(each["GPUAmount"]),
            vcpus=int(each["CpuCoreCount"]),
            ram_bytes=round(float(each["MemorySize"]) * GIB),
            prices=prices,
        )

    def _prices(self, region: str, type: str) -> Asking[dict[str, int]]:
        """By mode. A mode without a price is not for sale there."""
        found: dict[str, int] = {}
        for mode, more in (("on-demand", {}), ("spot", {"SpotStrategy": "SpotAsPriceGo"})):
            asked = {
                "ResourceType": "instance",
                "InstanceType": type,
                "PriceUnit": "Hour",
                "SystemDisk.Category": DISK,
                "SystemDisk.Size": str(self.disk_gb),
                **more,
            }
            reply = yield action(region, "DescribePrice", asked, accepts=frozenset({400, 403, 404}))
            if reply.status < 400:
                found[mode] = micros_of(reply.body["PriceInfo"]["Price"]["TradePrice"])
            elif reply.status == 403 and self.said(reply)[0] in self.codes.access:
                raise self.error(action(region, "DescribePrice", asked), reply)
        return found

    def machines(self, mark: str) -> Asking[list[Remote]]:
        found: list[Remote | None] = []
        for region in self.regions:
            query = {"Tag.1.Key": MARK, "Tag.1.Value": mark, "MaxResults": "100"}
            listed = yield from _every(region, "Instance", query)
            found += [self._remote(mark, region, each) for each in listed]
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        rental = boot.rental
        config = boot.cloud_config.encode()
        if len(config) > USER_DATA_BYTES_MAX:
            raise CannotDo(f"Alibaba Cloud accepts {USER_DATA_BYTES_MAX >> 10} KB of first-boot files")
        switch, _, group = self.pairs("networks").get(rental.region, "").partition("/")
        image = self.needed("image")
        limit = rental.price_limit_micros_per_hour
        most = {"SpotStrategy": "SpotAsPriceGo"}
        if limit is not None:
            most = {"SpotStrategy": "SpotWithPriceLimit", "SpotPriceLimit": f"{limit / 10**6:.3f}"}
        parameters = {
            ("ImageId" if image.startswith("m-") or image.endswith(".vhd") else "ImageFamily"): image,
            "InstanceType": rental.type,
            "ClientToken": boot.token[:64],
            "VSwitchId": switch,
            "SecurityGroupId": group,
            "InstanceName": boot.machine.hostname,
            "InstanceChargeType": "PostPaid",
            "InternetChargeType": "PayByTraffic",
            "InternetMaxBandwidthOut": "100",
            "SystemDisk.Category": DISK,
            "SystemDisk.Size": str(self.disk_gb),
            "SystemDisk.DiskName": boot.name,
            "UserData": base64.b64encode(config).decode(),
            "HttpTokens": "optional",
            **_numbered("Tag", [{"Key": name, "Value": value} for name, value in boot.tags.items()]),
            **(most if rental.mode == "spot" else {}),
            **({"AutoReleaseTime": boot.ends_at.strftime("%Y-%m-%dT%H:%M:%SZ")} if boot.ends_at else {}),
        }
        reply = yield action(rental.region, "RunInstances", parameters, act="launch")
        (id,) = reply.body["InstanceIdSets"]["InstanceIdSet"]
        spot = rental.mode == "spot"
        zone = rental.region
        return self.remote(f"{rental.region}/{id}", boot.token, Seen.PENDING, zone=zone, is_spot=spot)

    def give_back(self, remote_id: str) -> Asking[None]:
        yield from self._act(remote_id, "DeleteInstances", {"Force": "true"})

    def stop(self, remote_id: str) -> Asking[None]:
        yield from self._act(remote_id, "StopInstances", {"StoppedMode": "StopCharging"})

    def start(self, remote_id: str) -> Asking[None]:
        yield from self._act(remote_id, "StartInstances", {})

    def _act(self, remote_id: str, name: str, more: Mapping[str, str]) -> Asking[None]:
        region, _, id = remote_id.partition("/")
        yield action(region, name, {"InstanceId.1": id, **more}, act="change", accepts=frozenset({404}))

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        """Disks without a machine, by the name that the launch gave them. Its address is a part of the machine."""
        found: list[Leftover] = []
        for region in self.regions:
            query = {"Status": "Available", "MaxResults": "500"}
            for each in (yield from _every(region, "Disk", query)):
                id, name = each["DiskId"], each.get("DiskName") or ""
                token = read_name(mark, name) or _token(mark, each)
                found.append(self.loose_disk(f"{region}/{id}", each["Size"], name=id, token=token))
        return [each for each in found if each.token]

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        region, _, id = leftover.remote_id.partition("/")
        yield action(region, "DeleteDisk", {"DiskId": id}, act="change", accepts=frozenset({404}))

    def _remote(self, mark: str, region: str, each: Any) -> Remote | None:
        token = _token(mark, each)
        if not token:
            return None
        public = (each.get("PublicIpAddress") or {}).get("IpAddress") or []
        elastic = (each.get("EipAddress") or {}).get("IpAddress") or ""
        return self.remote(
            f"{region}/{each['InstanceId']}",
            token,
            SEEN[each["Status"]],
            address=public[0] if public else elastic,
            doing=each["Status"].lower(),
            zone=each["ZoneId"],
            type=each["InstanceType"],
            since=time_of(each.get("CreationTime")),
            is_spot=each.get("SpotStrategy", "NoSpot") != "NoSpot",
        )


def _token(mark: str, each: Any) -> str:
    """The token in the tags of a machine or a disk of ours."""
    tags = (each.get("Tags") or {}).get("Tag") or ()
    return read_tags(mark, {tag["TagKey"]: tag["TagValue"] for tag in tags})


def _every(region: str, noun: str, query: dict[str, str]) -> Asking[list[Any]]:
    """All pages of a listing."""
    found: list[Any] = []
    while True:
        reply = yield action(region, f"Describe{noun}s", query)
        found += reply.body[f"{noun}s"][noun]
        if not (token := reply.body.get("NextToken")):
            return found
        query = {**query, "NextToken": token}


def _numbered(name: str, items: list[dict[str, str]]) -> dict[str, str]:
    """A list as this API writes it: `Tag.1.Key`, `Tag.1.Value`, `Tag.2.Key` …"""
    return {
        f"{name}.{number}.{key}": value for number, each in enumerate(items, 1) for key, value in each.items()
    }
