"""A fake of Baidu Cloud's BCC and EIP. The models of the provider's SDK judge both sides of BCC."""

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine
from tests.fakes.models import Said

from teraflock.drivers.clouds.marks import machine_name

SPEC = "bcc.gn5.c12m48.1a10"


CALLS = {
    "GET /v2/instance/flavorSpec": Said(query="zoneName specs specId", reply="ListFlavorSpecResponse"),
    "GET /v2/instance": Said(query="marker maxKeys", reply="ListInstancesResponse"),
    "POST /v2/instanceBySpec": Said(
        query="clientToken", request="CreateInstanceBySpecRequest", reply="CreateInstanceBySpecResponse"
    ),
    "POST /v2/instance/{id}": Said(request="ReleaseInstanceByPostRequest"),
    "GET /v2/volume": Said(query="marker maxKeys", reply="ListVolumesResponse"),
    "POST /v2/volume/{id}": Said(request="ReleaseVolumeRequest"),
    "GET /eip/v1/eip": Said(query="marker maxKeys", reply="QueryEipListResponse"),
    "DELETE /eip/v1/eip/{eip}": Said(query="clientToken"),
}


class FakeBaidu(FakeCloud):
    services: ClassVar = ("eip",)
    said: ClassVar = ("baidu", CALLS)
    leaves: ClassVar = ("address", "disk")
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
                "gpuCardCount": 1,
            }  # fmt: skip
            groups = [{"groupId": "gn5", "flavors": [flavor]}]
            zone = f"cn-{self.region}-a"
            return 200, {"zoneResources": [{"zoneName": zone, "bccResources": {"flavorGroups": groups}}]}
        if path == "/v2/instance":
            there = [self._instance(each) for each in self.listed() if each.region == self.region]
            return 200, {"instances": there, "isTruncated": False, "maxKeys": 1000}
        if path == "/v2/instanceBySpec":
            return self._launch(query, body)
        if path.startswith(("/v2/volume", "/eip/")):
            return self._left(method, path)
        found = self.end(path.rpartition("/")[2])
        return (200, None) if found else _error(404, "NoSuchObject", "The specified object is not found")

    def _left(self, method: str, path: str) -> tuple[int, Any]:
        kind = "eipList" if path.startswith("/eip") else "volumes"
        if path.endswith(("/volume", "/v1/eip")):
            there = [each for key, each in self.disks.items() if key.startswith(kind) and self.region == "bj"]
            return 200, {kind: there, "isTruncated": False, "maxKeys": 1000, "marker": ""}
        found = self.disks.pop(f"{kind} {path.rpartition('/')[2]}", None)
        return (200, None) if found else _error(404, "NoSuchObject", "The specified object is not found")

    def leave(self, kind: str, mark: str, token: str) -> None:
        if kind == "address":
            address = f"198.51.100.{len(self.disks)}"
            self.disks[f"eipList {address}"] = {
                "eip": address, "eipId": "ip-1", "name": machine_name(mark, token), "status": "available",
                "instanceId": "",
            }  # fmt: skip
            return
        tags = {"teraflock": mark, "teraflock-token": token}
        self.disks[f"volumes v-{len(self.disks)}"] = {
            "id": f"v-{len(self.disks)}", "diskSizeInGB": 100, "status": "Available", "attachments": [],
            "tags": [{"tagKey": name, "tagValue": value} for name, value in tags.items()],
        }  # fmt: skip

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
