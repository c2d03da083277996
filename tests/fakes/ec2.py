"""A fake of AWS EC2 below botocore: it answers calls as botocore returns them, and botocore's own model of EC2 judges
the parameters and the replies. `test_ec2.py` has moto, which is not ours and has none of the faults."""

import base64
import json
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine, judged, method_of

from teraflock.drivers.clouds.calls import CloudCall, CloudReply
from teraflock.instance.engine_errors import EngineDown

TYPE = "g4dn.xlarge"
REGIONS = ("us-east-1", "us-west-2")
PRICES = {"on-demand": 526_000, "spot": 210_000}
Answer = tuple[int, Any]


class BotoJudge:
    """Checks calls and replies against the shapes in botocore: unknown, missing and wrong members are refused."""

    def __init__(self) -> None:
        self.judged = 0

    def check_call(self, call: CloudCall, status: int, body: Any) -> None:
        model = _model(call.method.partition(".")[0]).operation_model(call.method.partition(".")[2])
        _valid(model.input_shape, dict(call.body))
        if status < 400 and model.output_shape is not None:
            _valid(model.output_shape, body)
        self.judged += 1


@cache
def _model(service: str) -> Any:
    from botocore.loaders import create_loader
    from botocore.model import ServiceModel

    return ServiceModel(create_loader().load_service_model(service, "service-2"))


def _valid(shape: Any, value: Any) -> None:
    from botocore.validate import ParamValidator

    report = ParamValidator().validate(value, shape)
    assert not report.has_errors(), f"{shape.name}: {report.generate_report()}"


class FakeEc2(FakeCloud):
    secret: ClassVar = "AKIAEXAMPLE:secretexamplekey"
    options: ClassVar = {"regions": ",".join(REGIONS)}
    troubles: ClassVar = frozenset({"over_quota"})
    leaves: ClassVar = ("disk",)

    @classmethod
    def judge_of(cls) -> Any:
        return BotoJudge()

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.groups: dict[str, Any] = {}
        self.volumes: dict[str, Any] = {}

    def url(self, call: CloudCall) -> str:
        return ""

    def send(self, call: CloudCall, headers: Mapping[str, str], content: bytes | None) -> CloudReply:
        self.calls.append(f"{call.act} {call.method} {call.path}")
        if call.act in self.lost_requests:
            self.lost_requests.remove(call.act)
            raise EngineDown("The request was lost")
        status, body = self._answered(call)
        if call.act in self.lost_answers:
            self.lost_answers.remove(call.act)
            raise EngineDown("The answer was lost")
        return CloudReply(status=status, body=body)

    def _answered(self, call: CloudCall) -> Answer:
        if self.refusals:
            self.refusals -= 1
            return _error(503, "RequestLimitExceeded", "Request limit exceeded.")
        if self.locked_out:
            return _error(401, "AuthFailure", "AWS was not able to validate the provided access credentials")
        self.region = call.path
        status, body = self.route(call.method, call.path, {}, call.body)
        if self.judge is not None:
            judged(self.judge.check_call, call, status, body)
        return status, body

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        return getattr(self, method_of(method.partition(".")[2]))(body)  # type: ignore[no-any-return]

    def _describe_regions(self, body: Any) -> Answer:
        return 200, {"Regions": [{"RegionName": each} for each in REGIONS]}

    def _describe_instance_types(self, body: Any) -> Answer:
        card = {"Name": "T4", "Manufacturer": "NVIDIA", "Count": 1, "MemoryInfo": {"SizeInMiB": 16_384}}
        found = {
            "InstanceType": TYPE, "VCpuInfo": {"DefaultVCpus": 4}, "MemoryInfo": {"SizeInMiB": 16_384},
            "GpuInfo": {"Gpus": [card], "TotalGpuMemoryInMiB": 16_384},
        }  # fmt: skip
        return 200, {"InstanceTypes": [found]}

    def _get_products(self, body: Any) -> Answer:
        unit = {"pricePerUnit": {"USD": "0.5260000000"}}
        product = {
            "product": {"attributes": {"instanceType": TYPE}},
            "terms": {"OnDemand": {"a": {"priceDimensions": {"b": unit}}}},
        }
        return 200, {"PriceList": [json.dumps(product)]}

    def _describe_spot_price_history(self, body: Any) -> Answer:
        row = {
            "InstanceType": TYPE, "AvailabilityZone": f"{self.region}a", "SpotPrice": "0.210000",
            "Timestamp": self.clock.now(), "ProductDescription": "Linux/UNIX",
        }  # fmt: skip
        return 200, {"SpotPriceHistory": [row]}

    def _describe_images(self, body: Any) -> Answer:
        image = {
            "ImageId": "ami-1",
            "CreationDate": "2026-01-01T00:00:00.000Z",
            "RootDeviceName": "/dev/sda1",
        }
        return 200, {"Images": [image]}

    # Machines

    def _describe_instances(self, body: Any) -> Answer:
        states = next(each["Values"] for each in body["Filters"] if each["Name"] == "instance-state-name")
        there = [self._instance(each) for each in self.listed() if each.region == self.region]
        found = [
            each for each in there if each["State"]["Name"] in states and _has_tags(each, body["Filters"])
        ]
        return 200, {"Reservations": [{"ReservationId": "r-1", "Instances": [each]} for each in found]}

    def _run_instances(self, body: Any) -> Answer:
        if self.over_quota:
            return _error(400, "VcpuLimitExceeded", "You have requested more vCPU capacity than your limit.")
        if self.region in self.sold_out:
            return _error(500, "InsufficientInstanceCapacity", "We do not have sufficient capacity.")
        spot = "InstanceMarketOptions" in body
        made = self.launch(
            type=body["InstanceType"],
            region=self.region,
            label=body,
            boot=base64.b64decode(body["UserData"]).decode(),
            keys=[],
            gpus=1,
            gpu_memory_bytes=16 << 30,
            micros_per_hour=PRICES["spot" if spot else "on-demand"],
            spot=spot,
        )
        return 200, {"ReservationId": "r-1", "Instances": [self._instance(made)]}

    def _terminate_instances(self, body: Any) -> Answer:
        return self._changed(body, "TerminatingInstances", lambda each: self.end(each.id))

    def _stop_instances(self, body: Any) -> Answer:
        return self._changed(body, "StoppingInstances", lambda each: setattr(each, "stopped", True))

    def _start_instances(self, body: Any) -> Answer:
        return self._changed(body, "StartingInstances", lambda each: setattr(each, "stopped", False))

    def _changed(self, body: Any, name: str, change: Any) -> Answer:
        found = self.machines.get(body["InstanceIds"][0])
        if found is None:
            return _error(400, "InvalidInstanceID.NotFound", "The instance ID does not exist")
        change(found)
        return 200, {name: [{"InstanceId": found.id}]}

    def _instance(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        state = "stopped" if each.stopped or each.dead else "running" if up else "pending"
        tags = [tags for kind in each.label["TagSpecifications"] for tags in kind["Tags"]][:3]
        return {
            "InstanceId": each.id,
            "InstanceType": each.type,
            "State": {"Name": state, "Code": 0},
            "Placement": {"AvailabilityZone": f"{each.region}a"},
            "Tags": tags,
            "LaunchTime": self.told(each),
            **({"PublicIpAddress": each.address} if up else {}),
            **({"InstanceLifecycle": "spot"} if each.spot else {}),
            **({"StateReason": {"Code": "Server.InternalError", "Message": "internal"}} if each.dead else {}),
        }

    # What machines use

    def _describe_security_groups(self, body: Any) -> Answer:
        (name,) = body["Filters"][0]["Values"]
        there = [each for each in self.groups.values() if each["GroupName"] == name]
        return 200, {"SecurityGroups": [each for each in there if each["OwnerId"] == self.region]}

    def _create_security_group(self, body: Any) -> Answer:
        id = f"sg-{len(self.groups) + 1}"
        self.groups[id] = {"GroupId": id, "GroupName": body["GroupName"], "OwnerId": self.region}
        return 200, {"GroupId": id}

    def _authorize_security_group_ingress(self, body: Any) -> Answer:
        return 200, {"Return": True}

    def _delete_security_group(self, body: Any) -> Answer:
        found = self.groups.pop(body["GroupId"], None)
        return (200, {}) if found else _error(400, "InvalidGroup.NotFound", "The group does not exist")

    def _describe_volumes(self, body: Any) -> Answer:
        there = [each for each in self.volumes.values() if each["AvailabilityZone"].startswith(self.region)]
        return 200, {"Volumes": [each for each in there if _has_tags(each, body["Filters"])]}

    def leave(self, kind: str, mark: str, token: str) -> None:
        id, tags = f"vol-{len(self.volumes)}", {"teraflock": mark, "teraflock-token": token}
        self.volumes[id] = {
            "VolumeId": id, "Size": 128, "State": "available", "AvailabilityZone": f"{REGIONS[0]}a",
            "Tags": [{"Key": name, "Value": value} for name, value in tags.items()],
        }  # fmt: skip

    def _delete_volume(self, body: Any) -> Answer:
        found = self.volumes.pop(body["VolumeId"], None)
        return (200, None) if found else _error(400, "InvalidVolume.NotFound", "The volume does not exist")


def _has_tags(each: Any, filters: Any) -> bool:
    tags = {tag["Key"]: tag["Value"] for tag in each["Tags"]}
    wanted = {f["Name"][4:]: f["Values"] for f in filters if f["Name"].startswith("tag:")}
    return all(tags.get(name) in values for name, values in wanted.items())


def _error(status: int, code: str, message: str) -> Answer:
    return status, {"code": code, "message": message}
