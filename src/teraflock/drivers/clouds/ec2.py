"""AWS EC2: virtual machines with cloud-init, launch tokens, stop and start, and spot. Called through botocore.

Machines are in the default VPC of a region, in a security group that admits SSH. Each has its mark in tags, on the
instance and on its disk, which goes with it.
"""

import base64
from datetime import timedelta
from typing import Any, ClassVar, Final

from teraflock.base.errors import TeraflockError
from teraflock.drivers.clouds.calls import Asking, CloudCall, CloudReply
from teraflock.drivers.clouds.ec2_types import ec2_call, every, gpu_types
from teraflock.drivers.clouds.errors import CannotDo, ErrorCodes, NoMachineFree
from teraflock.drivers.clouds.marks import MARK, TOKEN, Boot
from teraflock.drivers.clouds.model import DISK_OPTION, CloudApi, Pace
from teraflock.drivers.clouds.notices import EC2_NOTICE
from teraflock.drivers.clouds.signing import Signer, parts_of
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import Capability, MachineType, Rental, Seen
from teraflock.instance.model import SSH_PORT

REGIONS: Final = "us-east-1,us-west-2"
IMAGE_OWNER: Final = "898082745236"
IMAGE_NAME: Final = "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 22.04) *"
USER_DATA_BYTES_MAX: Final = 16_384
LIVES: Final = ["pending", "running", "stopping", "stopped", "shutting-down"]
SEEN: Final = {
    "pending": Seen.PENDING,
    "running": Seen.RUNNING,
    "stopping": Seen.PENDING,
    "stopped": Seen.STOPPED,
    "shutting-down": Seen.PENDING,
}
TOO_MANY: Final = ("RequestLimitExceeded", "Throttling", "ThrottlingException")
CODES: Final = ErrorCodes(
    no_room=[
        "InsufficientInstanceCapacity",
        "InsufficientCapacity",
        "UnfulfillableCapacity",
        "InsufficientHostCapacity",
        "Unsupported",
        "SpotMaxPriceTooLow",
    ],
    quota=[
        "VcpuLimitExceeded",
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "VolumeLimitExceeded",
    ],
    busy=[*TOO_MANY, "InternalError"],
    access=["AuthFailure", "UnauthorizedOperation", "OptInRequired", "InvalidClientTokenId", "ExpiredToken"],
)
GONE: Final = "InvalidInstanceID.NotFound"


class Ec2Cloud(CloudApi):
    kind = "aws"
    title = "AWS"
    base_url = ""
    login = "ubuntu"
    pace = Pace(call_seconds=0.1, launch_seconds=0.5)
    capabilities = frozenset({Capability.STOP})
    boot_time_max = timedelta(minutes=15)
    types_age_max = timedelta(hours=6)
    options: ClassVar = {
        "regions": f"Regions to use, separated by commas. Default: `{REGIONS}`",
        "image": "The image id, if all regions have the same. Default: the newest with `image_name`",
        "image_owner": f"The account that publishes the image. Default: `{IMAGE_OWNER}`",
        "image_name": f"The name of the image, with `*`. Default: `{IMAGE_NAME}`",
        "disk_gb": f"{DISK_OPTION}. Default: 128",
    }
    defaults: ClassVar = {
        "regions": REGIONS,
        "image_owner": IMAGE_OWNER,
        "image_name": IMAGE_NAME,
        "disk_gb": "128",
    }
    codes = CODES
    notice = EC2_NOTICE

    @classmethod
    def signer(cls, secret: str) -> Signer:
        """botocore signs. The credentials are known here only to be removed from texts."""
        return Signer(*parts_of(secret, cls.title, "ACCESS_KEY_ID", "SECRET_ACCESS_KEY")[1].split(":"))

    def check(self) -> Asking[str]:
        reply = yield ec2_call(self.regions[0], "DescribeRegions", {})
        known = {each["RegionName"] for each in reply.body["Regions"]}
        if missing := sorted(set(self.regions) - known):
            raise CannotDo(f"AWS has no region {', '.join(missing)}", hint="Change `--set regions=…`")
        return f"AWS accepts the key; regions: {', '.join(self.regions)}"

    def types(self) -> Asking[list[MachineType]]:
        found = []
        for region in self.regions:
            found += yield from gpu_types(region, self.disk_bytes)
        return found

    def machines(self, mark: str) -> Asking[list[Remote]]:
        filters = [
            {"Name": f"tag:{MARK}", "Values": [mark]},
            {"Name": "instance-state-name", "Values": LIVES},
        ]
        found = []
        for region in self.regions:
            call = ec2_call(region, "DescribeInstances", {"Filters": filters})
            groups = yield from every(call, "Reservations")
            found += [self._remote(region, each) for group in groups for each in group["Instances"]]
        return found

    def rent(self, boot: Boot) -> Asking[Remote]:
        rental = boot.rental
        config = boot.cloud_config.encode()
        if len(config) > USER_DATA_BYTES_MAX:
            raise CannotDo(
                f"AWS accepts {USER_DATA_BYTES_MAX >> 10} KB of first-boot files, and this has {len(config) >> 10} KB",
                hint="Let a short user-data script download the rest",
            )
        image = yield from self._image(rental.region)
        group = yield from _security_group(rental.region, boot.mark)
        body = _launch(boot, rental, image, group, self.disk_gb, base64.b64encode(config).decode())
        reply = yield ec2_call(rental.region, "RunInstances", body, act="launch")
        return self._remote(rental.region, reply.body["Instances"][0])

    def _image(self, region: str) -> Asking[Any]:
        wanted, name = self.option("image"), self.option("image_name")
        query: dict[str, Any] = {"ImageIds": [wanted]} if wanted else {
            "Owners": [self.option("image_owner")],
            "Filters": [{"Name": "name", "Values": [name]}, {"Name": "state", "Values": ["available"]}],
        }  # fmt: skip
        reply = yield ec2_call(region, "DescribeImages", query)
        images = sorted(reply.body["Images"], key=lambda each: str(each.get("CreationDate", "")))
        if not images:
            raise CannotDo(
                f"AWS has no image `{wanted or name}` in {region}", hint="Set `image` or `image_name`"
            )
        return images[-1]

    def give_back(self, remote_id: str) -> Asking[None]:
        yield from self._act(remote_id, "TerminateInstances")

    def stop(self, remote_id: str) -> Asking[None]:
        yield from self._act(remote_id, "StopInstances")

    def start(self, remote_id: str) -> Asking[None]:
        yield from self._act(remote_id, "StartInstances")

    def _act(self, remote_id: str, operation: str) -> Asking[None]:
        region, _, id = remote_id.partition("/")
        call = ec2_call(region, operation, {"InstanceIds": [id]}, act="change", accepts=frozenset({400}))
        reply = yield call
        if reply.status >= 400 and _code(reply) != GONE:
            raise self.error(call, reply)

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        found = []
        for region in self.regions:
            query = {"Filters": [{"Name": "group-name", "Values": [f"teraflock-{mark}"]}]}
            reply = yield ec2_call(region, "DescribeSecurityGroups", query)
            found += [
                Leftover(
                    kind="security-group", remote_id=f"{region}/{each['GroupId']}", name=each["GroupName"]
                )
                for each in reply.body["SecurityGroups"]
            ]
            found += yield from self._loose_disks(region, mark)
        return found

    def _loose_disks(self, region: str, mark: str) -> Asking[list[Leftover]]:
        """Disks of ours without a machine. AWS deletes them with it, if all is well."""
        filters = [{"Name": f"tag:{MARK}", "Values": [mark]}, {"Name": "status", "Values": ["available"]}]
        disks = yield from every(ec2_call(region, "DescribeVolumes", {"Filters": filters}), "Volumes")
        return [
            self.loose_disk(
                f"{region}/{each['VolumeId']}",
                each["Size"],
                name=each["VolumeId"],
                token=next((tag["Value"] for tag in each.get("Tags") or () if tag["Key"] == TOKEN), ""),
            )
            for each in disks
        ]

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        region, _, id = leftover.remote_id.partition("/")
        if leftover.kind == "disk":
            yield ec2_call(region, "DeleteVolume", {"VolumeId": id}, act="change", accepts=frozenset({400}))
            return
        yield ec2_call(region, "DeleteSecurityGroup", {"GroupId": id}, act="change", accepts=frozenset({400}))

    def error(self, call: CloudCall, reply: CloudReply) -> TeraflockError:
        if _code(reply) == "IdempotentParameterMismatch":
            return NoMachineFree(
                "AWS knows this launch with other parameters", hint="The next place is tried"
            )
        return super().error(call, reply)

    def status(self, reply: CloudReply) -> int:
        """AWS asks for fewer requests with 400 or 503. All calls of the account wait then."""
        return 429 if reply.status >= 400 and _code(reply) in TOO_MANY else reply.status

    def said(self, reply: CloudReply) -> tuple[str, str]:
        words = str((reply.body or {}).get("message", ""))
        return _code(reply), f"{_code(reply)}: {words}"

    def _remote(self, region: str, each: Any) -> Remote:
        tags = {tag["Key"]: tag["Value"] for tag in each.get("Tags") or ()}
        state = each["State"]["Name"]
        return self.remote(
            f"{region}/{each['InstanceId']}",
            tags.get(TOKEN, ""),
            SEEN.get(state, Seen.BROKEN),
            address=each.get("PublicIpAddress") or "",
            doing=str((each.get("StateReason") or {}).get("Message", "")) or state,
            zone=(each.get("Placement") or {}).get("AvailabilityZone", ""),
            since=each.get("LaunchTime"),
            is_spot=each.get("InstanceLifecycle") == "spot",
            type=each["InstanceType"],
        )


def _security_group(region: str, mark: str) -> Asking[str]:
    """The id of our security group, created if it does not exist. It admits SSH only."""
    name = f"teraflock-{mark}"
    query = {"Filters": [{"Name": "group-name", "Values": [name]}]}
    found = yield ec2_call(region, "DescribeSecurityGroups", query)
    if found.body["SecurityGroups"]:
        return str(found.body["SecurityGroups"][0]["GroupId"])
    body = {"GroupName": name, "Description": "SSH to machines of Teraflock"}
    made = yield ec2_call(region, "CreateSecurityGroup", body, act="change")
    id = str(made.body["GroupId"])
    ssh = {
        "IpProtocol": "tcp", "FromPort": SSH_PORT, "ToPort": SSH_PORT, "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
    }  # fmt: skip
    rule = {"GroupId": id, "IpPermissions": [ssh]}
    yield ec2_call(region, "AuthorizeSecurityGroupIngress", rule, act="change", accepts=frozenset({400}))
    return id


def _launch(
    boot: Boot, rental: Rental, image: Any, group: str, disk_gb: int, user_data: str
) -> dict[str, Any]:
    tags = [
        {"Key": "Name", "Value": boot.machine.hostname},
        {"Key": MARK, "Value": boot.mark},
        {"Key": TOKEN, "Value": boot.token},
    ]
    disk = {"VolumeSize": disk_gb, "VolumeType": "gp3", "DeleteOnTermination": True}
    spot = {
        "MarketType": "spot",
        "SpotOptions": {
            "SpotInstanceType": "one-time",
            "InstanceInterruptionBehavior": "terminate",
            **_max_price(rental),
        },
    }
    return {
        "ImageId": image["ImageId"],
        "InstanceType": rental.type,
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": boot.token[:64],
        "UserData": user_data,
        "SecurityGroupIds": [group],
        "BlockDeviceMappings": [{"DeviceName": image.get("RootDeviceName") or "/dev/sda1", "Ebs": disk}],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")],
        "MetadataOptions": {"HttpTokens": "required"},
        **({"Placement": {"AvailabilityZone": rental.zone}} if rental.zone else {}),
        **({"InstanceMarketOptions": spot} if rental.mode == "spot" else {}),
    }


def _max_price(rental: Rental) -> dict[str, str]:
    limit = rental.price_limit_micros_per_hour
    return {} if limit is None else {"MaxPrice": f"{limit / 10**6:.6f}"}


def _code(reply: CloudReply) -> str:
    return str((reply.body or {}).get("code") or "") if isinstance(reply.body, dict) else ""
