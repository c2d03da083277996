"""A fake of Google Compute Engine: launches are operations, which fail later where a zone is full."""

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine
from tests.fakes.swagger import swagger_judge
from tests.unit.drivers.clouds.test_signatures import ACCOUNT

from teraflock.drivers.clouds.marks import machine_name

ZONES = ("us-central1-a", "us-east1-b")
TYPE = "g2-standard-4"
PARTS = {
    "G2 Instance Core running in Americas": 25_000_000,
    "G2 Instance Ram running in Americas": 3_000_000,
    "Nvidia L4 GPU running in Americas": 560_000_000,
}
"""Billionths of a dollar per hour."""
MICROS = {"STANDARD": 4 * 25_000 + 16 * 3_000 + 560_000, "SPOT": 10_000 * 4 + 1_000 * 16 + 224_000}
BASE = "https://www.googleapis.com/compute/v1/projects/p"


class FakeGce(FakeCloud):
    spec = "gce-compute-v1-subset-swagger.json"
    services: ClassVar = ("token", "billing")
    public: ClassVar = ("/token",)
    secret: ClassVar = json.dumps(ACCOUNT)
    unjudged: ClassVar = ("/token", "/billing")
    troubles: ClassVar = frozenset({"over_quota"})

    @classmethod
    def judge_of(cls) -> Any:
        return swagger_judge(cls.spec)

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.firewalls: dict[str, Any] = {}
        self.operations: dict[str, Any] = {}

    leaves: ClassVar = ("disk",)

    def leave(self, kind: str, mark: str, token: str) -> None:
        name = machine_name(mark, token)
        self.disks[name] = {
            "name": name,
            "zone": "us-central1-a",
            "sizeGb": "128",
            "labels": {"teraflock": mark},
        }

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization") == "Bearer token-of-google"

    def unauthorised(self) -> tuple[int, Any]:
        return _error(401, "authError", "Invalid Credentials")

    def too_many(self) -> Any:
        return _error(429, "rateLimitExceeded", "Rate Limit Exceeded")[1]

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if path == "/token/token":
            assert body["assertion"].count(".") == 2
            return 200, {"access_token": "token-of-google", "expires_in": 3600, "token_type": "Bearer"}
        if path.startswith("/billing/"):
            return 200, {"skus": [_sku(*each) for each in _rates()], "nextPageToken": ""}
        return self._compute(method, path.removeprefix("/projects/p"), query, body)

    def _compute(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if found := re.fullmatch(r"/aggregated/(\w+)", path):
            return self._aggregated(found[1])
        if found := re.fullmatch(r"/zones/([^/]+)/instances", path):
            return self._insert(found[1], body, query)
        if found := re.fullmatch(r"/zones/([^/]+)/operations/(.+)", path):
            return 200, self.operations[found[2]]
        if found := re.fullmatch(r"/zones/([^/]+)/instances/([^/]+)(/stop|/start)?", path):
            return self._act(method, found[1], found[2], found[3] or "")
        if found := re.fullmatch(r"/global/firewalls/(.+)", path):
            return self._firewall(method, found[1])
        if found := re.fullmatch(r"/zones/([^/]+)/disks/(.+)", path):
            if self.disks.pop(found[2], None) is None:
                return _error(404, "notFound", f"The resource '{found[2]}' was not found")
            return 200, self._operation("delete", found[1])
        if path == "/global/firewalls":
            self.firewalls[body["name"]] = body
            return 200, self._operation("insert", "global")
        if path.startswith("/regions/"):
            return 200, {"kind": "compute#region", "name": path.rpartition("/")[2]}
        return _error(404, "notFound", path)

    def _firewall(self, method: str, name: str) -> tuple[int, Any]:
        if name not in self.firewalls:
            return _error(404, "notFound", name)
        if method == "DELETE":
            del self.firewalls[name]
            return 200, self._operation("delete", "global")
        return 200, {"kind": "compute#firewall", "name": name}

    def _aggregated(self, name: str) -> tuple[int, Any]:
        items: dict[str, Any] = {f"zones/{zone}": {name: self._in_zone(name, zone)} for zone in ZONES}
        kind = {"machineTypes": "machineType", "instances": "instance", "disks": "disk"}[name]
        return 200, {"kind": f"compute#{kind}AggregatedList", "id": "x", "items": items}

    def _in_zone(self, name: str, zone: str) -> list[Any]:
        if name == "machineTypes":
            accelerators = [{"guestAcceleratorType": "nvidia-l4", "guestAcceleratorCount": 1}]
            type = {
                "name": TYPE,
                "guestCpus": 4,
                "memoryMb": 16_384,
                "zone": zone,
                "accelerators": accelerators,
            }
            return [type, {"name": "n1-standard-1", "guestCpus": 1, "memoryMb": 3_840, "zone": zone}]
        if name == "disks":
            return [each for each in self.disks.values() if each["zone"] == zone]
        return [self._instance(each) for each in self.listed() if each.region == zone]

    def _insert(self, zone: str, body: Any, query: Mapping[str, str]) -> tuple[int, Any]:
        if self.over_quota:
            return _error(403, "quotaExceeded", "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.")
        if any(each.id == f"{zone}/{body['name']}" and each.ended is None for each in self.machines.values()):
            return _error(409, "alreadyExists", "The resource already exists")
        if zone.rpartition("-")[0] in self.sold_out:
            words = f"The zone '{zone}' does not have enough resources available."
            errors = {"errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": words}]}
            return 200, self._operation("insert", zone, status="RUNNING", later={"error": errors})
        metadata = {each["key"]: each["value"] for each in body["metadata"]["items"]}
        model = body["scheduling"]["provisioningModel"]
        made = self.launch(
            id=f"{zone}/{body['name']}",
            type=body["machineType"].rpartition("/")[2],
            region=zone,
            label=body,
            boot=metadata["user-data"],
            keys=[metadata["ssh-keys"].partition(":")[2]],
            gpus=1,
            gpu_memory_bytes=24 << 30,
            micros_per_hour=MICROS[model],
            spot=model == "SPOT",
        )
        assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", body["name"]), body["name"]
        assert made.id, query["requestId"]
        return 200, self._operation("insert", zone)

    def _act(self, method: str, zone: str, name: str, act: str) -> tuple[int, Any]:
        id = f"{zone}/{name}"
        found = self.machines.get(id)
        if found is None or found.ended is not None:
            return _error(404, "notFound", f"The resource '{name}' was not found")
        if method == "DELETE":
            self.end(id)
        else:
            found.stopped = act == "/stop"
        return 200, self._operation(act.strip("/") or "delete", zone)

    def _operation(self, kind: str, zone: str, status: str = "DONE", later: Any = None) -> Any:
        name = f"operation-{len(self.operations) + 1}"
        made = {"kind": "compute#operation", "name": name, "operationType": kind, "status": status}
        self.operations[name] = {**made, "status": "DONE", **(later or {})}
        return made

    def _instance(self, each: FakeMachine) -> Any:
        up = self.is_up(each) and not each.stopped
        status = "TERMINATED" if each.stopped or each.dead else "RUNNING" if up else "STAGING"
        external = {
            "type": "ONE_TO_ONE_NAT",
            "name": "External NAT",
            **({"natIP": each.address} if up else {}),
        }
        return {
            "kind": "compute#instance",
            "id": "1",
            "name": each.label["name"],
            "status": status,
            "zone": f"{BASE}/zones/{each.region}",
            "machineType": f"{BASE}/{each.label['machineType']}",
            "labels": each.label["labels"],
            "scheduling": each.label["scheduling"],
            "creationTimestamp": self.told(each).isoformat(timespec="microseconds"),
            "networkInterfaces": [{"name": "nic0", "accessConfigs": [external]}],
        }


def _rates() -> list[tuple[str, str, int]]:
    spot = {"Core": 10_000_000, "Ram": 1_000_000, "GPU": 224_000_000}
    found = [(words, "OnDemand", nanos) for words, nanos in PARTS.items()]
    found += [
        (
            f"Spot Preemptible {words}",
            "Preemptible",
            next(nanos for part, nanos in spot.items() if part in words),
        )
        for words in PARTS
    ]
    return [*found, ("Commitment v1: Nvidia L4 GPU running in Americas for 1 Year", "OnDemand", 1)]


def _sku(words: str, usage: str, nanos: int) -> Any:
    rate = {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": "0", "nanos": nanos}}
    return {
        "skuId": words,
        "description": words,
        "category": {"resourceFamily": "Compute", "usageType": usage},
        "serviceRegions": ["us-central1", "us-east1"],
        "pricingInfo": [{"pricingExpression": {"usageUnit": "h", "tieredRates": [rate]}}],
    }


def _error(status: int, reason: str, message: str) -> tuple[int, Any]:
    listed = [{"message": message, "domain": "global", "reason": reason}]
    return status, {"error": {"code": status, "message": message, "errors": listed}}
