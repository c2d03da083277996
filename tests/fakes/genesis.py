"""A fake of Genesis Cloud's API. The types of the provider's own client judge both sides."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import KEY, FakeCloud, FakeMachine
from tests.fakes.models import Said, filled

TYPE = "vcpu-8_memory-24g_nvidia-rtx-3090-1"
PAGE = "page per_page"
CALLS = {
    "GET /availability/{region}/instances": Said(query="placement", reply="RegionAvailability"),
    "GET /instances": Said(query=PAGE, reply="InstancePage"),
    "POST /instances": Said(request="NewInstance", reply="InstanceAnswer"),
    "DELETE /instances/{id}": Said(),
    "POST /instances/{id}/actions": Said(request="InstanceAction"),
}


class FakeGenesis(FakeCloud):
    said: ClassVar = ("genesis", CALLS)
    options: ClassVar = {"prices": f"{TYPE}=0.9", "regions": "NORD-NO-KRS-1,ARC-IS-HAF-1", "image": "img-gpu"}

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        return headers.get("X-Auth-Token") == KEY

    def unauthorised(self) -> tuple[int, Any]:
        return 401, {"code": "unauthorized", "message": "invalid token"}

    def too_many(self) -> Any:
        return {"code": "too_many_requests", "message": "slow down"}

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if path.startswith("/availability/"):
            region = path.split("/")[2]
            types = [{"type": TYPE, "available": len(self.sold_out) < 2, "count": 3}]
            return 200, {"availability": {"type": "instances", "region": region, "instance_types": types}}
        id, _, _ = path.removeprefix("/instances").strip("/").partition("/")
        if not id and method == "GET":
            there = [self._instance(each) for each in self.listed()]
            return 200, {"instances": there, "page": 1, "per_page": 100, "total_count": len(there)}
        if not id:
            return self._launch(body)
        found = self.machines.get(id)
        if found is None or found.ended is not None:
            return 404, {"code": "not_found", "message": "instance not found"}
        if method == "DELETE":
            self.end(id)
        else:
            assert body["action"] in ("start", "stop", "reset")
            found.stopped = body["action"] == "stop"
        return 204, None

    def _launch(self, body: Any) -> tuple[int, Any]:
        if self.broke:
            return 400, {"code": "bad_request", "message": "A payment method is required."}
        if self.over_quota:
            return 400, {"code": "bad_request", "message": "Quota exceeded for this type."}
        if body["region"] in self.sold_out:
            return 400, {
                "code": "bad_request",
                "message": "The instance type is not available in this region.",
            }
        made = self.launch(
            type=body["type"],
            region=body["region"],
            label=body,
            boot=body["metadata"]["startup_script"],
            keys=[],
            gpus=1,
            gpu_memory_bytes=24 << 30,
            micros_per_hour=900_000,
        )
        return 201, {"instance": self._instance(made)}

    def _instance(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        status = "error" if each.dead else "stopped" if each.stopped else "active" if up else "build"
        known = {
            "id": each.id, "name": each.label["name"], "status": status, "region": each.region, "type": each.type,
            "public_ip": each.address if up else None, "created_at": self.told(each).isoformat(),
        }  # fmt: skip
        return filled("genesis", "Instance", known)
