"""A fake of IBM Cloud's VPC API and of its token service. The models of the provider's SDK judge both sides."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine
from tests.fakes.models import Said, filled

from teraflock.drivers.clouds.marks import machine_name

PROFILE = "gx3-16x80x1l4"
VIRTUAL = "VirtualNetworkInterfaceReferenceAttachmentContext"
NOW = "2026-11-15T00:00:00Z"
NAMES = "version generation"
PAGE = f"{NAMES} limit start name"
LAUNCH = "InstancePrototypeInstanceByImageInstanceByImageInstanceByNetworkAttachment"
CALLS = {
    "GET /instance/profiles": Said(query=PAGE, reply="InstanceProfileCollection"),
    "GET /instances": Said(query=PAGE, reply="InstanceCollection"),
    "POST /instances": Said(query=NAMES, request=LAUNCH, reply="Instance"),
    "GET /instances/{id}": Said(query=NAMES, reply="Instance"),
    "DELETE /instances/{id}": Said(query=NAMES),
    "GET /floating_ips": Said(query=PAGE, reply="FloatingIPCollection"),
    "POST /floating_ips": Said(
        query=NAMES, request="FloatingIPPrototypeFloatingIPByTarget", reply="FloatingIP"
    ),
    "DELETE /floating_ips/{id}": Said(query=NAMES),
    "GET /volumes": Said(query=PAGE, reply="VolumeCollection"),
    "DELETE /volumes/{id}": Said(query=NAMES),
}


class FakeIbm(FakeCloud):
    said: ClassVar = ("ibm", CALLS)
    unjudged: ClassVar = ("/token",)
    leaves: ClassVar = ("address", "disk")
    services: ClassVar = ("token",)
    public: ClassVar = ("/token",)
    secret: ClassVar = "apikey-of-ibm"
    options: ClassVar = {
        "prices": f"{PROFILE}=1.2,{PROFILE}:spot=0.5",
        "networks": "us-south-1=vpc1/sub1,us-east-1=vpc2/sub2",
        "images": "us-south=img1,us-east=img2",
    }

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.floating: dict[str, Any] = {}

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        return headers.get("Authorization") == "Bearer token-of-ibm"

    def unauthorised(self) -> tuple[int, Any]:
        return _error(401, "not_authenticated", "The token is not valid")

    def too_many(self) -> Any:
        return _error(429, "too_many_requests", "Too many requests")[1]

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if path == "/token/identity/token":
            assert body["apikey"] == self.secret
            return 200, {"access_token": "token-of-ibm", "expires_in": 3600}
        assert query["generation"] == "2"
        assert query["version"]
        if path == "/instance/profiles" and "start" not in query:
            more = {
                "href": f"https://{self.region}.iaas.cloud.ibm.com/v1/instance/profiles?start=p2&limit=100"
            }
            return 200, _collection("InstanceProfile", "profiles", [_profile("bx2-2x8", gpus=0)], next=more)
        if path == "/instance/profiles":
            return 200, _collection("InstanceProfile", "profiles", [_profile(PROFILE)])
        if found := re.fullmatch(r"/volumes/?(.*)", path):
            return self._volume(method, found[1])
        if found := re.fullmatch(r"/floating_ips/?(.*)", path):
            return self._address(method, found[1], body)
        id = path.removeprefix("/instances").strip("/")
        if not id and method == "GET":
            there = [each for each in self.listed() if each.region.startswith(self.region)]
            return 200, _collection("Instance", "instances", [self._instance(each) for each in there])
        return self._launch(body) if not id else self._act(method, id)

    def _address(self, method: str, id: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            there = [each for each in self.floating.values() if each["zone"]["name"].startswith(self.region)]
            return 200, _collection("FloatingIP", "floating_ips", there)
        if method == "DELETE":
            return (204, None) if self.floating.pop(id, None) else _error(404, "not_found", id)
        if any(each["name"] == body["name"] for each in self.floating.values()):
            return _error(400, "validation_unique_failed", "Provided Name is not unique")
        owner = self.machines[body["target"]["id"].removeprefix("vni-")]
        id = self._named_address(body["name"], owner.address, owner.region, body["target"])
        return 201, self.floating[id]

    def _named_address(self, name: str, address: str, zone: str, target: Any = None) -> str:
        id = f"fip-{len(self.floating) + 1}"
        known = {"id": id, "name": name, "address": address, "zone": {"name": zone, "href": ""}}
        found = filled("ibm", "FloatingIP", {**known, "created_at": NOW})
        self.floating[id] = {**found, **({"target": target} if target else {})}
        return id

    def _volume(self, method: str, id: str) -> tuple[int, Any]:
        if method == "DELETE":
            return (204, None) if self.disks.pop(id, None) else _error(404, "volume_not_found", id)
        there = [each for each in self.disks.values() if each["zone"]["name"].startswith(self.region)]
        return 200, _collection("Volume", "volumes", there)

    def leave(self, kind: str, mark: str, token: str) -> None:
        name = machine_name(mark, token)
        if kind == "address":
            self._named_address(name, "198.51.100.77", "us-east-1")
            return
        known = {
            "id": f"vol-{len(self.disks)}",
            "name": name,
            "capacity": 100,
            "zone": {"name": "us-east-1", "href": ""},
        }
        self.disks[str(known["id"])] = filled("ibm", "Volume", {**known, "created_at": NOW})

    def _launch(self, body: Any) -> tuple[int, Any]:
        zone = body["zone"]["name"]
        if self.broke:
            return _error(402, "payment_required", "Your account is suspended")
        if self.over_quota:
            return _error(403, "over_quota", "The number of GPUs exceeds your quota")
        if {zone, zone.rpartition("-")[0]} & self.sold_out:
            return _error(503, "insufficient_capacity", "There is insufficient capacity in the zone")
        assert re.fullmatch(r"([a-z]|[a-z][-a-z0-9]*[a-z0-9])", body["name"]), body["name"]
        assert len(body["name"]) <= 63
        spot = (body.get("availability") or {}).get("class") == "spot"
        made = self.launch(
            type=body["profile"]["name"],
            region=zone,
            label=body,
            boot=body["user_data"],
            keys=[],
            gpus=1,
            gpu_memory_bytes=24 << 30,
            micros_per_hour=500_000 if spot else 1_200_000,
            spot=spot,
        )
        return 201, self._instance(made)

    def _act(self, method: str, id: str) -> tuple[int, Any]:
        found = self.machines.get(id)
        if found is None or found.ended is not None:
            return _error(404, "instance_not_found", "Instance not found")
        if method == "DELETE":
            self.end(id)
            return 204, None
        return 200, self._instance(found)

    def _instance(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        interface = filled("ibm", VIRTUAL, {"id": f"vni-{each.id}"})
        reasons = [{"code": "cannot_start_capacity", "message": "no capacity"}] if each.dead else []
        attached = {"id": "a", "virtual_network_interface": interface}
        known = {
            "id": each.id,
            "name": each.label["name"],
            "status": "failed" if each.dead else "running" if up else "starting",
            "status_reasons": reasons,
            "zone": {"name": each.region, "href": ""},
            "profile": filled("ibm", "InstanceProfileReference", {"name": each.type}),
            "primary_network_attachment": filled("ibm", "InstanceNetworkAttachmentReference", attached),
            "availability": filled(
                "ibm", "InstanceAvailability", {"class": "spot" if each.spot else "standard"}
            ),
            "created_at": self.told(each).isoformat().replace("+00:00", "Z"),
        }
        return filled("ibm", "Instance", known)


def _collection(model: str, name: str, items: list[Any], **more: Any) -> Any:
    known = {name: items, "limit": 100, "first": {"href": ""}, "total_count": len(items), **more}
    return filled("ibm", f"{model}Collection", known)


def _profile(name: str, *, gpus: int = 1) -> Any:
    cards = {
        "gpu_count": {"type": "fixed", "value": gpus},
        "gpu_model": {"type": "enum", "values": ["L4"]},
        "gpu_memory": {"type": "fixed", "value": 24},
    }
    size = {"vcpu_count": {"type": "fixed", "value": 16}, "memory": {"type": "fixed", "value": 80}}
    return filled("ibm", "InstanceProfile", {"name": name, **(cards if gpus else {}), **size})


def _error(status: int, code: str, message: str) -> tuple[int, Any]:
    return status, {"errors": [{"code": code, "message": message}], "trace": "t"}
