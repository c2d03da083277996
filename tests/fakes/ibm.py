"""A fake of IBM Cloud's VPC API and of its token service.

Requests may have only the fields that the models of the provider's SDK have, and must have those that it requires.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine

PROFILE = "gx3-16x80x1l4"
LAUNCH = "InstancePrototype"
MODELS: dict[str, tuple[str, dict[str, str]]] = {
    LAUNCH: (
        "image! zone! primary_network_attachment! availability availability_policy cluster_network_attachments"
        " confidential_compute_mode default_trusted_profile enable_secure_boot keys metadata_service name"
        " placement_target profile reservation_affinity resource_group threads_per_core total_volume_bandwidth"
        " user_data vcpu volume_attachments volume_bandwidth_qos_mode vpc boot_volume_attachment network_attachments",
        {
            "primary_network_attachment": "InstanceNetworkAttachmentPrototype",
            "boot_volume_attachment": "VolumeAttachmentPrototype",
            "availability": "InstanceAvailabilityPrototype",
            "availability_policy": "InstanceAvailabilityPolicyPrototype",
            "reservation_affinity": "InstanceReservationAffinityPrototype",
            **dict.fromkeys(("image", "vpc"), "ById"),
            **dict.fromkeys(("zone", "profile"), "ByName"),
        },
    ),
    "InstanceNetworkAttachmentPrototype": (
        "virtual_network_interface! name",
        {"virtual_network_interface": "VirtualNetworkInterfacePrototype"},
    ),
    "VirtualNetworkInterfacePrototype": (
        "allow_ip_spoofing auto_delete enable_infrastructure_nat ips name primary_ip protocol_state_filtering_mode"
        " resource_group security_groups subnet",
        {"subnet": "ById"},
    ),
    "VolumeAttachmentPrototype": (
        "volume! delete_volume_on_instance_delete name",
        {"volume": "VolumePrototype"},
    ),
    "VolumePrototype": (
        "profile! allowed_use bandwidth capacity encryption_key iops name resource_group user_tags",
        {"profile": "ByName"},
    ),
    "InstanceAvailabilityPrototype": ("class", {}),
    "InstanceAvailabilityPolicyPrototype": ("host_failure preemption", {}),
    "InstanceReservationAffinityPrototype": ("policy pool", {}),
    "FloatingIPPrototype": ("target! name resource_group", {"target": "ById"}),
    "ById": ("id!", {}),
    "ByName": ("name!", {}),
}
"""The fields of the models in ibm-vpc 0.36.0, those that it requires with `!`, and which model a field has."""


def judge(body: Any, model: str) -> None:
    words, inner = MODELS[model]
    known = {word.rstrip("!") for word in words.split()}
    required = {word.rstrip("!") for word in words.split() if word.endswith("!")}
    assert required <= set(body) <= known, (model, sorted(body))
    for name, value in body.items():
        if name in inner:
            judge(value, inner[name])


class FakeIbm(FakeCloud):
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
            return 200, {"profiles": [_profile("bx2-2x8", gpus=0)], "limit": 100, "next": more}
        if path == "/instance/profiles":
            return 200, {"profiles": [_profile(PROFILE)], "limit": 100}
        if found := re.fullmatch(r"/floating_ips/?(.*)", path):
            return self._address(method, found[1], body)
        id = path.removeprefix("/instances").strip("/")
        if not id and method == "GET":
            there = [each for each in self.listed() if each.region.startswith(self.region)]
            return 200, {"instances": [self._instance(each) for each in there], "limit": 100}
        return self._launch(body) if not id else self._act(method, id)

    def _address(self, method: str, id: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            there = [each for each in self.floating.values() if each["region"] == self.region]
            return 200, {"floating_ips": there}
        if method == "DELETE":
            return (204, None) if self.floating.pop(id, None) else _error(404, "not_found", id)
        judge(body, "FloatingIPPrototype")
        if any(each["name"] == body["name"] for each in self.floating.values()):
            return _error(400, "validation_unique_failed", "Provided Name is not unique")
        owner = self.machines[body["target"]["id"].removeprefix("vni-")]
        id = f"fip-{len(self.floating) + 1}"
        self.floating[id] = {
            "id": id, "name": body["name"], "address": owner.address, "target": body["target"], "region": self.region,
        }  # fmt: skip
        return 201, self.floating[id]

    def _launch(self, body: Any) -> tuple[int, Any]:
        judge(body, LAUNCH)
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
        interface = {"id": f"vni-{each.id}"}
        reasons = [{"code": "cannot_start_capacity", "message": "no capacity"}] if each.dead else []
        return {
            "id": each.id,
            "name": each.label["name"],
            "status": "failed" if each.dead else "running" if up else "starting",
            "status_reasons": reasons,
            "zone": {"name": each.region},
            "profile": {"name": each.type},
            "primary_network_attachment": {"id": "a", "virtual_network_interface": interface},
            "availability": {"class": "spot" if each.spot else "standard"},
            "created_at": self.told(each).isoformat().replace("+00:00", "Z"),
        }


def _profile(name: str, *, gpus: int = 1) -> Any:
    cards = {
        "gpu_count": {"type": "fixed", "value": gpus},
        "gpu_model": {"type": "enum", "values": ["L4"]},
        "gpu_memory": {"type": "fixed", "value": 24},
    }
    size = {"vcpu_count": {"type": "fixed", "value": 16}, "memory": {"type": "fixed", "value": 80}}
    return {"name": name, **(cards if gpus else {}), **size}


def _error(status: int, code: str, message: str) -> tuple[int, Any]:
    return status, {"errors": [{"code": code, "message": message}], "trace": "t"}
