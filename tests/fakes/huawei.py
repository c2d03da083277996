"""A fake of Huawei Cloud's ECS and EVS. The models of the provider's SDKs judge both sides."""

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine
from tests.fakes.models import Said

from teraflock.drivers.clouds.marks import machine_name

FLAVOR = "pi2.2xlarge.4"
REGIONS = ("cn-north-4", "cn-east-3")


CALLS = {
    "GET /v1/{project}/cloudservers/flavors": Said(query="availability_zone", reply="ListFlavorsResponse"),
    "GET /v1/{project}/cloudservers/detail": Said(
        query="enterprise_project_id flavor ip limit name not-tags offset reservation_id server_id status tags",
        reply="ListServersDetailsResponse",
    ),
    "POST /v1/{project}/cloudservers": Said(
        request="CreatePostPaidServersRequestBody", reply="CreatePostPaidServersResponse"
    ),
    "POST /v1/{project}/cloudservers/delete": Said(
        request="DeleteServersRequestBody", reply="DeleteServersResponse"
    ),
    "GET /disks/v2/{project}/cloudvolumes/detail": Said(
        query="limit marker name offset status", reply="ListVolumesResponse"
    ),
    "DELETE /disks/v2/{project}/cloudvolumes/{id}": Said(reply="DeleteVolumeResponse"),
}


class FakeHuawei(FakeCloud):
    services: ClassVar = ("disks",)
    said: ClassVar = ("huawei", CALLS)
    leaves: ClassVar = ("disk",)
    secret: ClassVar = "akexample:skexample"
    options: ClassVar = {
        "prices": f"{FLAVOR}=9.5,{FLAVOR}:spot=3.1",
        "networks": ",".join(f"{each}=project/vpc/subnet" for each in REGIONS),
        "images": ",".join(f"{each}=img" for each in REGIONS),
    }

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization", "").startswith("SDK-HMAC-SHA256 Access=akexample,")

    def unauthorised(self) -> tuple[int, Any]:
        return 401, {"error_code": "APIGW.0301", "error_msg": "Incorrect IAM authentication information"}

    def too_many(self) -> Any:
        return {"error_code": "APIGW.0308", "error_msg": "The throttling threshold has been reached"}

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if path.startswith("/disks"):
            return self._disk(method, path.rpartition("/")[2])
        rest = path.removeprefix("/v1/project/cloudservers")
        if rest == "/flavors":
            extra = {"info:gpu:name": "1 * NVIDIA T4 / 1 * 16G"}
            return 200, {"flavors": [{"id": FLAVOR, "vcpus": "8", "ram": 32_768, "os_extra_specs": extra}]}
        if rest == "/detail":
            there = [self._server(each) for each in self.listed() if each.region == self.region]
            return 200, {"servers": there, "count": len(there)}
        if rest == "/delete":
            assert body["delete_publicip"]
            assert body["delete_volume"]
            found = self.end(body["servers"][0]["id"])
            return (200, {"job_id": "j"}) if found else _error(404, "Ecs.0114", "The instance does not exist")
        return self._launch(body["server"])

    def _disk(self, method: str, id: str) -> tuple[int, Any]:
        if method == "DELETE":
            return (
                (200, {"job_id": "j"}) if self.disks.pop(id, None) else _error(404, "EVS.5404", "not found")
            )
        there = [each for each in self.disks.values() if each["availability_zone"] == f"{self.region}a"]
        return 200, {"volumes": there, "count": len(there)}

    def leave(self, kind: str, mark: str, token: str) -> None:
        id = f"disk-{len(self.disks)}"
        name = f"{machine_name(mark, token)}-volume-0000"
        self.disks[id] = {
            "id": id, "name": name, "size": 100, "status": "available", "attachments": [],
            "availability_zone": f"{REGIONS[0]}a",
        }  # fmt: skip

    def _launch(self, server: Any) -> tuple[int, Any]:
        assert self.headers["X-Client-Token"].startswith("ins_")
        if self.broke:
            return _error(403, "Ecs.0003", "Insufficient balance.")
        if self.over_quota:
            return _error(400, "Ecs.0001", "The ECS quota is insufficient.")
        if self.region in self.sold_out:
            return _error(400, "Ecs.0319", "The current specifications are sold out.")
        spot = server["extendparam"].get("marketType") == "spot"
        made = self.launch(
            type=server["flavorRef"],
            region=self.region,
            label=server,
            boot=base64.b64decode(server["user_data"]).decode(),
            keys=[],
            gpus=1,
            gpu_memory_bytes=16 << 30,
            micros_per_hour=3_100_000 if spot else 9_500_000,
            spot=spot,
        )
        return 200, {"job_id": "j", "serverIds": [made.id]}

    def _server(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        addresses = [{"addr": "192.168.0.2", "OS-EXT-IPS:type": "fixed"}]
        addresses += [{"addr": each.address, "OS-EXT-IPS:type": "floating"}] if up else []
        return {
            "id": each.id,
            "name": each.label["name"],
            "status": "ERROR" if each.dead else "ACTIVE" if up else "BUILD",
            "flavor": {"id": each.type},
            "addresses": {"vpc": addresses},
            "tags": [f"{tag['key']}={tag['value']}" for tag in each.label["server_tags"]],
            "metadata": {"charging_mode": "2" if each.spot else "0"},
            "OS-EXT-AZ:availability_zone": f"{each.region}a",
            "created": self.told(each).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


def _error(status: int, code: str, message: str) -> tuple[int, Any]:
    return status, {"error": {"code": code, "message": message}}
