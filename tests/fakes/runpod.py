"""A fake of RunPod's REST API v2."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine

PRICE = 0.44
CENTERS = ("US-KS-2", "EU-RO-1")


class FakeRunPod(FakeCloud):
    spec = "runpod-openapi-v2.json"
    judged_with: ClassVar = {"prefix": "/v2"}
    troubles: ClassVar = frozenset({"broke"})

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if (method, path) == ("GET", "/catalog/gpus"):
            return 200, {"gpus": [self._gpu()]}
        if (method, path) == ("GET", "/pods"):
            return 200, {"pods": [self._pod(each) for each in self.listed()]}
        if (method, path) == ("POST", "/pods"):
            return self._launch(body)
        if method == "DELETE" and path.startswith("/pods/") and self.end(path.rpartition("/")[2]):
            return 204, None
        return 404, {"title": "Not Found", "status": 404, "detail": "pod not found"}

    def unauthorised(self) -> tuple[int, Any]:
        return 401, {"title": "Unauthorized", "status": 401, "detail": "invalid API key"}

    def too_many(self) -> Any:
        return {"title": "Too Many Requests", "status": 429, "detail": "slow down"}

    def _gpu(self) -> Any:
        return {
            "id": "NVIDIA L4",
            "name": "L4",
            "pool": None,
            "manufacturer": "NVIDIA",
            "memory": 24,
            "secure": True,
            "community": False,
            "price": {"secure": PRICE, "community": PRICE},
            "maxCount": {"secure": 4, "community": 1},
            "availability": "HIGH",
            "dataCenters": [{"id": each, "name": each, "availability": "HIGH"} for each in CENTERS],
        }

    def _launch(self, body: Any) -> tuple[int, Any]:
        if self.broke:
            return 402, {"title": "Payment Required", "status": 402, "detail": "Your balance is too low."}
        (center,) = body["dataCenterIds"]
        if center in self.sold_out:
            detail = "There are no longer any instances available with the requested specifications."
            return 400, {"title": "Bad Request", "status": 400, "detail": detail}
        count = body["gpu"]["count"]
        made = self.launch(
            type=body["gpu"]["id"],
            region=center,
            label=body,
            boot="",
            keys=body["env"]["PUBLIC_KEY"].split("\n"),
            gpus=count,
            gpu_memory_bytes=24 << 30,
            micros_per_hour=round(PRICE * 10**6) * count,
        )
        return 201, self._pod(made)

    def _pod(self, each: FakeMachine) -> Any:
        up, asked = self.is_up(each), each.label
        at = {"host": each.address, "port": 22, "username": "root", "command": f"ssh root@{each.address}"}
        return {
            "id": each.id,
            "name": asked["name"],
            "status": "ERROR" if each.dead else "RUNNING" if up else "STARTING",
            "actions": ["stop", "terminate"],
            "image": asked["image"],
            "args": "",
            "disk": asked["disk"],
            "mounts": {},
            "ports": asked["ports"],
            "env": asked["env"],
            "registry": None,
            "gpu": asked["gpu"],
            "cloud": "SECURE",
            "dataCenterId": each.region,
            "cudaVersion": None,
            "ssh": {"proxy": None, "direct": at if up else None},
            "template": None,
            "cost": each.micros_per_hour / 10**6,
            "locked": False,
            "runtime": None,
            "createdAt": self.told(each).isoformat(),
            "startedAt": None,
            "globalNetworking": {"enabled": False},
        }
