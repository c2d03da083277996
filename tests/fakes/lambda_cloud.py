"""A fake of Lambda's API."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine

TYPES = {"gpu_1x_a10": (1, 24, 75, "A10 (24 GB PCIe)"), "gpu_8x_v100_n": (8, 16, 632, "Tesla V100 (16 GB)")}
"""GPUs, GB each, cents per hour, description."""
REGIONS = ("us-east-1", "us-west-1")
ACTIONS = ("migrate", "rebuild", "restart", "cold_reboot", "terminate")
GIB = 1 << 30


class FakeLambda(FakeCloud):
    spec = "lambda-openapi-1.8.3.json"
    judged_with: ClassVar = {"prefix": "/api/v1"}

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.ssh_keys: dict[str, dict[str, str]] = {}
        self.cents = {name: type[2] for name, type in TYPES.items()}

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if (method, path) == ("GET", "/instance-types"):
            return 200, {"data": {name: self._offer(name) for name in TYPES}}
        if (method, path) == ("GET", "/instances"):
            return 200, {"data": [self._instance(each) for each in self.listed()]}
        if (method, path) == ("POST", "/instance-operations/launch"):
            return self._launch(body)
        if (method, path) == ("POST", "/instance-operations/terminate"):
            return self._terminate(body["instance_ids"])
        if (method, path) == ("GET", "/ssh-keys"):
            return 200, {"data": list(self.ssh_keys.values())}
        if (method, path) == ("POST", "/ssh-keys"):
            id = f"{len(self.ssh_keys) + 1:032x}"
            self.ssh_keys[id] = {"id": id, "name": body["name"], "public_key": body["public_key"]}
            return 200, {"data": self.ssh_keys[id]}
        if method == "DELETE" and path.startswith("/ssh-keys/"):
            self.ssh_keys.pop(path.rpartition("/")[2], None)
            return 200, {"data": {}}
        return _error(404, "global/object-does-not-exist", "Not found")

    def unauthorised(self) -> tuple[int, Any]:
        return _error(401, "global/invalid-api-key", "API key was invalid, expired, or deleted.")

    def too_many(self) -> Any:
        return _error(429, "global/too-many-requests", "Too many requests")[1]

    def new_id(self, number: int) -> str:
        return f"{number:032x}"

    def _launch(self, body: Any) -> tuple[int, Any]:
        if self.broke:
            return _error(
                403, "global/account-inactive", "Your account is inactive. Update your payment method."
            )
        if self.over_quota:
            return _error(400, "global/quota-exceeded", "Quota exceeded: 8 GPUs in us-east-1.")
        if body["region_name"] in self.sold_out:
            code = "instance-operations/launch/insufficient-capacity"
            return _error(400, code, "Not enough capacity to fulfill launch request.")
        gpus, memory_gb, _, _ = TYPES[body["instance_type_name"]]
        named = {each["name"]: each["public_key"] for each in self.ssh_keys.values()}
        (key,) = body["ssh_key_names"]
        made = self.launch(
            type=body["instance_type_name"],
            region=body["region_name"],
            label=body["tags"],
            boot=body["user_data"],
            keys=[named[key]],
            gpus=gpus,
            gpu_memory_bytes=memory_gb * GIB,
            micros_per_hour=self.cents[body["instance_type_name"]] * 10_000,
        )
        return 200, {"data": {"instance_ids": [made.id]}}

    def _terminate(self, ids: list[str]) -> tuple[int, Any]:
        found = [self.machines[id] for id in ids if self.end(id)]
        if not found:
            return _error(404, "global/object-does-not-exist", "Specified instance does not exist.")
        terminated = [{**self._instance(each), "status": "terminated"} for each in found]
        return 200, {"data": {"terminated_instances": terminated}}

    def _offer(self, name: str) -> Any:
        regions = [] if len(self.sold_out) == len(REGIONS) else REGIONS
        free = [{"name": each, "description": each} for each in regions]
        return {"instance_type": self._type(name), "regions_with_capacity_available": free}

    def _type(self, name: str) -> Any:
        gpus, _, _, description = TYPES[name]
        return {
            "name": name,
            "description": f"{gpus}x {description}",
            "gpu_description": description,
            "price_cents_per_hour": self.cents[name],
            "specs": {"vcpus": 30 * gpus, "memory_gib": 200, "storage_gib": 1400, "gpus": gpus},
        }

    def _instance(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        shown = {"ip": each.address} if up else {}
        return {
            "id": each.id,
            "name": "one",
            "status": "unhealthy" if each.dead else "active" if up else "booting",
            "ssh_key_names": ["ours"],
            "file_system_names": [],
            "region": {"name": each.region, "description": each.region},
            "instance_type": self._type(each.type),
            "actions": {action: {"available": True} for action in ACTIONS},
            "tags": each.label,
            **shown,
        }


def _error(status: int, code: str, message: str) -> tuple[int, Any]:
    return status, {"error": {"code": code, "message": message, "suggestion": "Check it."}}
