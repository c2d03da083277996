"""A fake of Paperspace's API."""

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine

RATE = 0.76
NEVER = "2026-01-01T00:00:00Z"


def nullable(spec: Any) -> Any:
    """The description forgets that `nextPage` is null on the last page, and null in lists of allowed values."""
    if isinstance(spec, list):
        return [nullable(each) for each in spec]
    if not isinstance(spec, dict):
        return spec
    found = {name: nullable(each) for name, each in spec.items()}
    if "nextPage" in found and isinstance(found["nextPage"], dict):
        found["nextPage"] = {**found["nextPage"], "nullable": True}
    if found.get("nullable") is True and "enum" in found:
        found["enum"] = [*found["enum"], None]
    return found


class FakePaperspace(FakeCloud):
    spec = "paperspace-openapi.json"
    judged_with: ClassVar = {"change": nullable, "prefix": "/v1"}
    options: ClassVar = {"prices": "A4000=0.76"}

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.scripts: dict[str, Any] = {}
        self.made_scripts = 0

    def unauthorised(self) -> tuple[int, Any]:
        return 401, {"code": "UNAUTHORIZED", "message": "Invalid API key"}

    def too_many(self) -> Any:
        return {"code": "TOO_MANY_REQUESTS", "message": "Too many requests"}

    leaves: ClassVar = ("startup-script",)

    def leave(self, kind: str, mark: str, token: str) -> None:
        self.route("POST", "/startup-scripts", {}, {"name": f"tf.{mark}.{token}", "script": "true"})

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        noun, _, rest = path.strip("/").partition("/")
        if noun == "machine-availability":
            return 200, {"available": len(self.sold_out) < 2}
        if noun == "os-templates":
            return 200, _page([_template("Ubuntu 22.04"), _template("ML-in-a-Box")])
        if noun == "startup-scripts":
            return self._script(method, rest, body)
        if method == "GET":
            return 200, _page([self._machine(each) for each in self.listed()])
        if method == "POST":
            return self._launch(body)
        return self._act(method, *rest.partition("/")[::2])

    def _script(self, method: str, id: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            return 200, _page([self._shown(each) for each in self.scripts])
        if method == "POST":
            self.made_scripts += 1
            id = f"script-{self.made_scripts}"
            self.scripts[id] = body
            return 200, self._shown(id)
        if id not in self.scripts:
            return 404, {"code": "NOT_FOUND", "message": "Not found"}
        shown = self._shown(id)
        del self.scripts[id]
        return 200, shown

    def _shown(self, id: str) -> Any:
        users = [each.id for each in self.alive if each.label["startupScriptId"] == id]
        users += [each.id for each in self.machines.values() if each.label["startupScriptId"] == id]
        script = self.scripts[id]
        return {
            "id": id, "name": script["name"], "description": None, "isEnabled": True, "isRunOnce": False,
            "assignedMachineIds": sorted(set(users)), "dtCreated": NEVER, "dtDeleted": None,
        }  # fmt: skip

    def _launch(self, body: Any) -> tuple[int, Any]:
        if self.broke:
            return _error(400, "Please add a payment method to create machines.")
        if self.over_quota:
            return _error(400, "You have reached your machine limit. Please contact support.")
        if body["region"] in self.sold_out:
            return _error(400, f"A4000 is out of capacity in {body['region']}.")
        made = self.launch(
            type=body["machineType"],
            region=body["region"],
            label=body,
            boot=self.scripts[body["startupScriptId"]]["script"],
            keys=[],
            gpus=1,
            gpu_memory_bytes=16 << 30,
            micros_per_hour=round(RATE * 10**6),
        )
        return 200, {"event": _event("create", made.id), "data": self._machine(made)}

    def _act(self, method: str, id: str, act: str) -> tuple[int, Any]:
        found = self.machines.get(id)
        if found is None or found.ended is not None:
            return _error(404, "Machine not found")
        shown = self._machine(found)
        if method == "DELETE":
            self.end(id)
        else:
            found.stopped = act == "stop"
        name = "deactivate" if method == "DELETE" else act
        return 200, {"event": _event(name, id), "data": shown}

    def _machine(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        state = "off" if each.stopped or each.dead else "ready" if up else "provisioning"
        none = dict.fromkeys(
            [
                "privateIp", "networkId", "autoShutdownTimeout", "autoShutdownForce", "autoSnapshotFrequency",
                "autoSnapshotSaveCount", "restorePointFrequency", "restorePointSnapshotId", "dtDeleted", "reservation",
            ]
        )  # fmt: skip
        return {
            **none,
            "id": each.id,
            "name": each.label["name"],
            "state": state,
            "os": "Ubuntu",
            "machineType": each.type,
            "agentType": "LinuxHeadless",
            "cpus": 8,
            "ram": 48_318_382_080,
            "storageTotal": 1,
            "storageUsed": 0,
            "accelerators": [{"name": "Ampere A4000", "memory": 17_179_869_184, "count": 1}],
            "region": each.region,
            "publicIp": each.address if up else None,
            "publicIpType": "dynamic",
            "autoShutdownEnabled": False,
            "autoSnapshotEnabled": False,
            "updatesPending": False,
            "restorePointEnabled": False,
            "usageRate": RATE,
            "storageRate": 5,
            "dtCreated": self.told(each).isoformat().replace("+00:00", "Z"),
            "dtModified": NEVER,
        }


def _page(items: list[Any]) -> Any:
    return {"hasMore": False, "nextPage": None, "items": items}


def _template(name: str) -> Any:
    types = [{"machineTypeLabel": "A4000", "isAvailable": True}]
    return {
        "id": f"t-{name[:2].lower()}", "name": name, "agentType": "LinuxHeadless", "operatingSystemLabel": "Ubuntu",
        "defaultSizeGb": 50, "availableMachineTypes": types, "dtCreated": NEVER,
    }  # fmt: skip


def _event(name: str, id: str) -> Any:
    return {
        "id": "e-1", "name": name, "state": "new", "machineId": id, "dtCreated": NEVER, "dtStarted": None,
        "dtFinished": None, "error": None,
    }  # fmt: skip


def _error(status: int, message: str) -> tuple[int, Any]:
    return status, {"code": "BAD_REQUEST" if status == 400 else "NOT_FOUND", "message": message}
