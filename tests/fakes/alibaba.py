"""A fake of Alibaba Cloud's ECS. The provider's metadata judges requests where it is at hand, the models of its SDK
judge replies."""

import base64
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from tests.fakes.base import FakeCloud, FakeMachine, method_of
from tests.fakes.exchange import Exchange
from tests.fakes.judge import SPECS
from tests.fakes.models import ModelJudge, Said

from teraflock.drivers.clouds.marks import machine_name

TYPE = "ecs.gn6i-c4g1.xlarge"
PRICES = {"NoSpot": 11.6, "SpotAsPriceGo": 3.5, "SpotWithPriceLimit": 3.5}
REGIONS = ("cn-hangzhou", "cn-shanghai")


ACTIONS = (
    "DescribeInstances", "DescribeInstanceTypes", "DescribePrice", "RunInstances", "DeleteInstances", "StopInstances",
    "StartInstances", "DescribeDisks", "DeleteDisk",
)  # fmt: skip
CALLS = {each: Said(reply=f"{each}ResponseBody") for each in ACTIONS}


class AlibabaJudge(ModelJudge):
    """Checks that every parameter of a request exists, and that none is missing; and replies by the SDK's models."""

    def __init__(self) -> None:
        super().__init__("alibaba", CALLS)
        path = Path(os.environ.get(SPECS, "none")) / "alibaba-ecs-2014-05-26-meta-subset.json"
        self._metadata = msgspec.json.decode(path.read_bytes()) if path.exists() else {}

    def check(self, exchange: Exchange) -> None:
        super().check(exchange)
        if exchange.headers["x-acs-action"] in self._metadata:
            self._check_request(exchange.query, exchange.headers)

    def _check_request(self, query: Mapping[str, str], headers: Any) -> None:
        known = {each["name"]: each for each in self._metadata[headers["x-acs-action"]]["parameters"]}
        plain = {re.sub(r"\.\d+(\..+)?$", "", name) if "." in name else name for name in query}
        unknown = [name for name in query if name not in known and re.sub(r"\.\d+.*$", "", name) not in known]
        assert not unknown, unknown
        missing = [name for name, each in known.items() if each["required"] and name not in {*query, *plain}]
        assert not missing, missing


class FakeAlibaba(FakeCloud):
    secret: ClassVar = "akexample:skexample"
    options: ClassVar = {
        "networks": ",".join(f"{each}=vsw-1/sg-1" for each in REGIONS), "image": "gpu-family", "types": TYPE,
    }  # fmt: skip

    leaves: ClassVar = ("disk",)

    @classmethod
    def judge_of(cls) -> Any:
        return AlibabaJudge()

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization", "").startswith("ACS3-HMAC-SHA256 Credential=akexample,")

    def unauthorised(self) -> tuple[int, Any]:
        return _error(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")

    def too_many(self) -> Any:
        return _error(429, "Throttling.User", "Request was denied due to user flow control.")[1]

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        return getattr(self, method_of(self.headers["x-acs-action"]))(query)  # type: ignore[no-any-return]

    def _describe_instance_types(self, query: Mapping[str, str]) -> tuple[int, Any]:
        type = {
            "InstanceTypeId": TYPE, "GPUSpec": "NVIDIA T4", "GPUAmount": 1, "GPUMemorySize": 16.0, "CpuCoreCount": 4,
            "MemorySize": 15.0,
        }  # fmt: skip
        return 200, {"InstanceTypes": {"InstanceType": [type]}}

    def _describe_price(self, query: Mapping[str, str]) -> tuple[int, Any]:
        price = PRICES[query.get("SpotStrategy", "NoSpot")]
        return 200, {"PriceInfo": {"Price": {"TradePrice": price, "OriginalPrice": price, "Currency": "CNY"}}}

    def _describe_instances(self, query: Mapping[str, str]) -> tuple[int, Any]:
        there = [self._instance(each) for each in self.listed() if each.region == query["RegionId"]]
        return 200, {"Instances": {"Instance": there}, "TotalCount": len(there), "NextToken": ""}

    def _run_instances(self, query: Mapping[str, str]) -> tuple[int, Any]:
        if self.broke:
            return _error(
                403, "InvalidAccountStatus.NotEnoughBalance", "Your account does not have enough balance."
            )
        if self.over_quota:
            return _error(403, "QuotaExceed.ElasticQuota", "The quota of this type is exceeded.")
        if query["RegionId"] in self.sold_out:
            return _error(403, "OperationDenied.NoStock", "The requested resource is sold out in this zone.")
        strategy = query.get("SpotStrategy", "NoSpot")
        made = self.launch(
            type=query["InstanceType"],
            region=query["RegionId"],
            label=dict(query),
            boot=base64.b64decode(query["UserData"]).decode(),
            keys=[],
            gpus=1,
            gpu_memory_bytes=16 << 30,
            micros_per_hour=round(PRICES[strategy] * 10**6),
            spot=strategy != "NoSpot",
        )
        return 200, {"InstanceIdSets": {"InstanceIdSet": [made.id]}}

    def _describe_disks(self, query: Mapping[str, str]) -> tuple[int, Any]:
        there = [each for each in self.disks.values() if each["RegionId"] == query["RegionId"]]
        return 200, {"Disks": {"Disk": there}, "NextToken": "", "TotalCount": len(there)}

    def _delete_disk(self, query: Mapping[str, str]) -> tuple[int, Any]:
        found = self.disks.pop(query["DiskId"], None)
        return (200, {}) if found else _error(404, "InvalidDiskId.NotFound", "The disk does not exist.")

    def leave(self, kind: str, mark: str, token: str) -> None:
        id = f"d-{len(self.disks)}"
        self.disks[id] = {
            "DiskId": id, "DiskName": machine_name(mark, token), "Size": 100, "Status": "Available",
            "RegionId": REGIONS[0],
        }  # fmt: skip

    def _delete_instances(self, query: Mapping[str, str]) -> tuple[int, Any]:
        if not self.end(query["InstanceId.1"]):
            return _error(404, "InvalidInstanceId.NotFound", "The specified InstanceId does not exist.")
        return 200, {}

    def _stop_instances(self, query: Mapping[str, str]) -> tuple[int, Any]:
        self.machines[query["InstanceId.1"]].stopped = True
        return 200, {}

    def _start_instances(self, query: Mapping[str, str]) -> tuple[int, Any]:
        self.machines[query["InstanceId.1"]].stopped = False
        return 200, {}

    def _instance(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        tags = [
            {"TagKey": each.label[f"Tag.{n}.Key"], "TagValue": each.label[f"Tag.{n}.Value"]} for n in (1, 2)
        ]
        return {
            "InstanceId": each.id,
            "InstanceType": each.type,
            "Status": "Stopped" if each.stopped or each.dead else "Running" if up else "Starting",
            "ZoneId": f"{each.region}-b",
            "PublicIpAddress": {"IpAddress": [each.address] if up else []},
            "EipAddress": {"IpAddress": ""},
            "Tags": {"Tag": tags},
            "SpotStrategy": each.label.get("SpotStrategy", "NoSpot"),
            "CreationTime": self.told(each).strftime("%Y-%m-%dT%H:%MZ"),
        }


def _error(status: int, code: str, message: str) -> tuple[int, Any]:
    return status, {"Code": code, "Message": message, "RequestId": "r"}
