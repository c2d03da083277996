"""A fake of Oracle Cloud's compute and identity APIs. The models of the provider's SDK judge both sides."""

import base64
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine
from tests.fakes.models import Said, filled, models_of
from tests.unit.drivers.clouds.test_signatures import ORACLE

from teraflock.drivers.clouds.marks import machine_name

SHAPE = "VM.GPU.A10.1"
NOW = "2026-11-15T00:00:00.000Z"
MODELS = models_of("oci")
REGIONS = ("us-ashburn-1", "us-phoenix-1")


PAGE = "compartmentId limit page"
API = "/20160918"
CALLS = {
    f"GET /identity{API}/availabilityDomains": Said(query="compartmentId page", reply="[AvailabilityDomain]"),
    f"GET {API}/shapes": Said(query=f"{PAGE} availabilityDomain", reply="[Shape]"),
    f"GET {API}/vnicAttachments": Said(query=f"{PAGE} instanceId", reply="[VnicAttachment]"),
    f"GET {API}/privateIps": Said(query="limit page subnetId vnicId", reply="[PrivateIp]"),
    f"GET {API}/publicIps": Said(query=f"{PAGE} scope availabilityDomain lifetime", reply="[PublicIp]"),
    f"GET {API}/instances": Said(query=f"{PAGE} displayName", reply="[Instance]"),
    f"POST {API}/instances": Said(request="LaunchInstanceDetails", reply="Instance"),
    f"DELETE {API}/instances/{{id}}": Said(query="preserveBootVolume"),
    f"GET {API}/bootVolumes": Said(query=f"{PAGE} availabilityDomain", reply="[BootVolume]"),
    f"DELETE {API}/bootVolumes/{{id}}": Said(),
}


class FakeOracle(FakeCloud):
    said: ClassVar = ("oci", CALLS)
    leaves: ClassVar = ("disk",)
    services: ClassVar = ("identity",)
    secret: ClassVar = ORACLE
    options: ClassVar = {
        "prices": f"{SHAPE}=2.00,{SHAPE}:spot=1.00",
        "networks": ",".join(f"{each}=ocid1.subnet.{each}" for each in REGIONS),
        "images": ",".join(f"{each}=ocid1.image.{each}" for each in REGIONS),
    }

    def is_signed(self, headers: Mapping[str, str]) -> bool:
        return 'keyId="ocid1.tenancy.oc1..aaa/' in headers.get("Authorization", "")

    def unauthorised(self) -> tuple[int, Any]:
        return _error(
            401, "NotAuthenticated", "The required information to complete authentication was not provided"
        )

    def too_many(self) -> Any:
        return _error(429, "TooManyRequests", "Too many requests")[1]

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        noun, _, id = path.partition("/20160918/")[2].partition("/")
        here = [each for each in self.listed() if each.region == self.region]
        if noun == "availabilityDomains":
            return 200, [{"name": f"Uocm:{self.region.upper()}-AD-1", "compartmentId": "c", "id": "d"}]
        if noun == "shapes":
            return 200, [_shape(), {"shape": "VM.Standard3.Flex", "ocpus": 1.0, "memoryInGBs": 16.0}]
        if noun == "vnicAttachments":
            return 200, [_of("VnicAttachment", instanceId=each.id, vnicId=f"vnic-{each.id}") for each in here]
        if noun == "privateIps":
            assert query["subnetId"] == f"ocid1.subnet.{self.region}"
            return 200, [_of("PrivateIp", id=f"private-{each.id}", vnicId=f"vnic-{each.id}") for each in here]
        if noun == "publicIps":
            up = [each for each in here if self.is_up(each)]
            return 200, [
                _of("PublicIp", ipAddress=each.address, assignedEntityId=f"private-{each.id}") for each in up
            ]
        if noun == "bootVolumes":
            return self._boot_volume(method, id)
        if method == "DELETE":
            return (204, None) if self.end(id) else _error(404, "NotAuthorizedOrNotFound", "not found")
        return self._launch(body) if method == "POST" else (200, [self._instance(each) for each in here])

    def _boot_volume(self, method: str, id: str) -> tuple[int, Any]:
        if method == "DELETE":
            return (204, None) if self.disks.pop(id, None) else _error(404, "NotAuthorizedOrNotFound", id)
        return 200, list(self.disks.values()) if self.region == REGIONS[0] else []

    def leave(self, kind: str, mark: str, token: str) -> None:
        id, name = f"disk-{len(self.disks)}", f"{machine_name(mark, token)} (Boot Volume)"
        self.disks[id] = _of("BootVolume", id=id, displayName=name, sizeInGBs=128, lifecycleState="AVAILABLE")

    def _launch(self, body: Any) -> tuple[int, Any]:
        assert self.headers["opc-retry-token"].startswith("ins_")
        if self.over_quota:
            return _error(400, "LimitExceeded", "The following service limits were exceeded: gpu-a10-count.")
        if self.broke:
            return _error(400, "InvalidParameter", "Your account is suspended.")
        if self.region in self.sold_out:
            return _error(500, "InternalError", "Out of host capacity.")
        spot = "preemptibleInstanceConfig" in body
        made = self.launch(
            type=body["shape"],
            region=self.region,
            label=body,
            boot=base64.b64decode(body["metadata"]["user_data"]).decode(),
            keys=[body["metadata"]["ssh_authorized_keys"]],
            gpus=1,
            gpu_memory_bytes=24 << 30,
            micros_per_hour=1_000_000 if spot else 2_000_000,
            spot=spot,
        )
        return 200, self._instance(made)

    def _instance(self, each: FakeMachine) -> Any:
        state = "STOPPED" if each.dead else "RUNNING" if self.is_up(each) else "PROVISIONING"
        return _of(
            "Instance",
            id=each.id,
            displayName=each.label["displayName"],
            availabilityDomain=each.label["availabilityDomain"],
            shape=each.type,
            lifecycleState=state,
            freeformTags=each.label["freeformTags"],
            timeCreated=self.told(each).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        )


def _of(model: str, **known: Any) -> Any:
    return filled("oci", model, {**({"timeCreated": NOW} if "timeCreated" in MODELS[model] else {}), **known})


def _shape() -> Any:
    return {
        "shape": SHAPE, "ocpus": 15.0, "memoryInGBs": 240.0, "gpus": 1, "gpuDescription": "NVIDIA® A10",
    }  # fmt: skip


def _error(status: int, code: str, message: str) -> tuple[int, Any]:
    return status, {"code": code, "message": message}
