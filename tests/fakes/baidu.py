"""A fake of Baidu Cloud's BCC."""

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine

SPEC = "bcc.gn5.c12m48.1a10"


class FakeBaidu(FakeCloud):
    secret: ClassVar = "akexample:skexample"
    options: ClassVar = {"prices": f"{SPEC}=8.2", "images": "bj=img-bj,gz=img-gz"}

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization", "").startswith("bce-auth-v1/akexample/")

    def unauthorised(self) -> tuple[int, Any]:
        return _error(403, "SignatureDoesNotMatch", "The request signature does not match")

    def too_many(self) -> Any:
        return _error(429, "RequestLimitExceeded", "Too many requests")[1]

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if path == "/v2/instance/flavorSpec":
            flavor = {
                "spec": SPEC, "cpuCount": 12, "memoryCapacityInGB": 48, "gpuCardType": "nvidia-A10",
                "gpuCardCount": "1",
            }  # fmt: skip
            groups = [{"groupId": "gn5", "flavors": [flavor]}]
            zone = f"cn-{self.region}-a"
            return 200, {"zoneResources": [{"zoneName": zone, "bccResources": {"flavorGroups": groups}}]}
        if path == "/v2/instance":
            there = [self._instance(each) for each in self.listed() if each.region == self.region]
            return 200, {"instances": there, "isTruncated": False, "maxKeys": 1000}
        if path == "/v2/instanceBySpec":
            return self._launch(query, body)
        found = self.end(path.rpartition("/")[2])
        return (200, {}) if found else _error(404, "NoSuchObject", "The specified object is not found")

    def _launch(self, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        assert query["clientToken"].startswith("ins_")
        if self.broke:
            return _error(403, "BalanceNotEnough", "Your balance is not enough")
        if self.over_quota:
            return _error(413, "Instance.QuotaExceeded", "The quota is exceeded")
        if self.region in self.sold_out:
            return _error(403, "StockNotEnough", "The flavor is sold out")
        made = self.launch(
            type=body["spec"],
            region=self.region,
            label=body,
            boot=base64.b64decode(body["userData"]).decode(),
            keys=[],
            gpus=1,
            gpu_memory_bytes=24 << 30,
            micros_per_hour=8_200_000,
        )
        return 200, {"instanceIds": [made.id]}

    def _instance(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        return {
            "id": each.id,
            "name": each.label["name"],
            "status": "Error" if each.dead else "Running" if up else "Starting",
            "spec": each.type,
            "zoneName": f"cn-{each.region}-a",
            "publicIp": each.address if up else "",
            "tags": each.label["tags"],
            "createTime": self.told(each).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


def _error(status: int, code: str, message: str) -> tuple[int, Any]:
    return status, {"code": code, "message": message, "requestId": "r"}
