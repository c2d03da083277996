"""A fake of Tencent Cloud's CVM and VPC, judged by the description in Tencent's own command line."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from tests.fakes.base import FakeCloud, FakeMachine, method_of
from tests.fakes.exchange import Exchange
from tests.fakes.judge import specs_folder

ZONES = {"ap-guangzhou": "ap-guangzhou-3", "ap-shanghai": "ap-shanghai-2"}
TYPE = "GN7.2XLARGE32"
PRICES = {"POSTPAID_BY_HOUR": 7.35, "SPOTPAID": 2.2}
KINDS: dict[str, Any] = {
    "string": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
    "list": list,
    "object": dict,
}


class TencentJudge:
    """Checks names, types and required members of requests and replies."""

    def __init__(self) -> None:
        path = Path(specs_folder()) / "tencent-cvm-20170312-api.json"
        if not path.exists():
            pytest.skip("the description of Tencent Cloud is not at hand")
        self._api = msgspec.json.decode(path.read_bytes())
        self.judged = 0

    def check(self, exchange: Exchange) -> None:
        action = exchange.headers["X-TC-Action"]
        assert exchange.headers["X-TC-Version"] == "2017-03-12"
        assert exchange.answered["Content-Type"] == "application/json"
        said = self._api["actions"][action]
        self._valid(said["input"], msgspec.json.decode(exchange.content or b""), is_request=True)
        response = msgspec.json.decode(exchange.body)["Response"]
        if "Error" not in response:
            self._valid(said["output"], response, is_request=False)
        self.judged += 1

    def _valid(self, name: str, value: Any, *, is_request: bool) -> None:
        members = {each["name"]: each for each in self._api["objects"][name]["members"]}
        assert not (unknown := set(value) - set(members)), f"{name} has no {unknown}"
        for each in members.values():
            if each["name"] not in value:
                assert not (is_request and each.get("required")), f"{name} needs {each['name']}"
                continue
            self._member(each, value[each["name"]], is_request=is_request)

    def _member(self, member: Any, value: Any, *, is_request: bool) -> None:
        assert isinstance(value, KINDS[member["type"]]), (member, value)
        values = value if member["type"] == "list" else [value]
        if member["member"] in self._api["objects"]:
            for each in values:
                self._valid(member["member"], each, is_request=is_request)


class FakeTencent(FakeCloud):
    services: ClassVar = ("vpc",)
    unjudged: ClassVar = ("/vpc",)
    secret: ClassVar = "AKIDexample:secretexample"

    @classmethod
    def judge_of(cls) -> Any:
        return TencentJudge()

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.groups: dict[str, Any] = {}

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization", "").startswith("TC3-HMAC-SHA256 Credential=AKIDexample/")

    def unauthorised(self) -> tuple[int, Any]:
        return _error("AuthFailure.SignatureFailure", "The provided credentials could not be validated.")

    def too_many(self) -> Any:
        return _error("RequestLimitExceeded", "Too many requests")[1]

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        action = self.headers["X-TC-Action"]
        return getattr(self, method_of(action))(self.headers["X-TC-Region"], body)  # type: ignore[no-any-return]

    def _describe_zone_instance_config_infos(self, region: str, body: Any) -> tuple[int, Any]:
        items = [
            {
                "Zone": ZONES[region], "InstanceType": TYPE, "InstanceChargeType": mode, "InstanceFamily": "GN7",
                "Cpu": 8, "Memory": 32, "Gpu": 1, "GpuCount": 1.0, "Status": "SELL",
                "Price": {"UnitPrice": price * 2, "UnitPriceDiscount": price, "ChargeUnit": "HOUR"},
            }
            for mode, price in PRICES.items()
        ]  # fmt: skip
        return _ok(InstanceTypeQuotaSet=items)

    def _describe_images(self, region: str, body: Any) -> tuple[int, Any]:
        images = [
            {"ImageId": f"img-{year}", "CreatedTime": f"{year}-01-01T00:00:00Z"} for year in (2026, 2024)
        ]
        return _ok(ImageSet=images, TotalCount=2)

    def _describe_security_groups(self, region: str, body: Any) -> tuple[int, Any]:
        ((name,),) = [each["Values"] for each in body["Filters"]]
        found = [{"SecurityGroupId": id} for id, each in self.groups.items() if each == (region, name)]
        return _ok(SecurityGroupSet=found, TotalCount=len(found))

    def _create_security_group(self, region: str, body: Any) -> tuple[int, Any]:
        id = f"sg-{len(self.groups) + 1}"
        self.groups[id] = (region, body["GroupName"])
        return _ok(SecurityGroup={"SecurityGroupId": id})

    def _create_security_group_policies(self, region: str, body: Any) -> tuple[int, Any]:
        return _ok()

    def _delete_security_group(self, region: str, body: Any) -> tuple[int, Any]:
        self.groups.pop(body["SecurityGroupId"], None)
        return _ok()

    def _describe_instances(self, region: str, body: Any) -> tuple[int, Any]:
        there = [each for each in self.listed() if each.region == region]
        return _ok(InstanceSet=[self._instance(each) for each in there], TotalCount=len(there))

    def _run_instances(self, region: str, body: Any) -> tuple[int, Any]:
        if self.broke:
            return _error("InvalidAccount.InsufficientBalance", "Insufficient balance.")
        if self.over_quota:
            return _error("LimitExceeded.CvmInstanceQuota", "The quota of instances is exceeded.")
        if region in self.sold_out:
            return _error("ResourcesSoldOut.SpecifiedInstanceType", "The specified type is sold out.")
        assert body["Placement"]["Zone"] == ZONES[region]
        assert body["ImageId"] == "img-2026"
        made = self.launch(
            type=body["InstanceType"],
            region=region,
            label=body,
            boot=base64.b64decode(body["UserData"]).decode(),
            keys=[],
            gpus=1,
            gpu_memory_bytes=16 << 30,
            micros_per_hour=round(PRICES[body["InstanceChargeType"]] * 10**6),
            spot=body["InstanceChargeType"] == "SPOTPAID",
        )
        return _ok(InstanceIdSet=[made.id])

    def _act(self, body: Any) -> tuple[FakeMachine | None, tuple[int, Any]]:
        found = self.machines.get(body["InstanceIds"][0])
        if found is None or found.ended is not None:
            return None, _error("InvalidInstanceId.NotFound", "The instance does not exist.")
        return found, _ok()

    def _terminate_instances(self, region: str, body: Any) -> tuple[int, Any]:
        found, answer = self._act(body)
        if found is not None:
            self.end(found.id)
        return answer

    def _stop_instances(self, region: str, body: Any) -> tuple[int, Any]:
        found, answer = self._act(body)
        if found is not None:
            found.stopped = True
        return answer

    def _start_instances(self, region: str, body: Any) -> tuple[int, Any]:
        found, answer = self._act(body)
        if found is not None:
            found.stopped = False
        return answer

    def _instance(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        state = (
            "LAUNCH_FAILED" if each.dead else "STOPPED" if each.stopped else "RUNNING" if up else "PENDING"
        )
        return {
            "InstanceId": each.id,
            "InstanceState": state,
            "InstanceType": each.type,
            "InstanceChargeType": each.label["InstanceChargeType"],
            "Placement": {"Zone": ZONES[each.region]},
            "Tags": each.label["TagSpecification"][0]["Tags"],
            "PublicIpAddresses": [each.address] if up else [],
            "DefaultLoginUser": "ubuntu",
            "CreatedTime": self.told(each).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "LatestOperationState": "SUCCESS",
        }


def _ok(**values: Any) -> tuple[int, Any]:
    return 200, {"Response": {**values, "RequestId": "r"}}


def _error(code: str, message: str) -> tuple[int, Any]:
    return 200, {"Response": {"Error": {"Code": code, "Message": message}, "RequestId": "r"}}
