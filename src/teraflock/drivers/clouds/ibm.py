"""IBM Cloud VPC: virtual machines with cloud-init and spot, no launch tokens. API `v1`, generation 2.

A machine has no public address of its own: it gets a floating one once it runs, which is deleted with it. The operator
names a network and an image for each zone and region, and the prices.
"""

from typing import Any, ClassVar, Final

from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import Asking, CloudCall, delete_call
from teraflock.drivers.clouds.errors import ErrorCodes
from teraflock.drivers.clouds.marks import Boot, read_name
from teraflock.drivers.clouds.model import DISK_OPTION, PRICES_OPTION, CloudApi
from teraflock.drivers.clouds.prices import disk_price
from teraflock.drivers.clouds.sound import time_of, token_of_page
from teraflock.drivers.clouds.tokens import IbmSigner
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import MachineType, Seen

VERSION: Final = {"version": "2025-11-25", "generation": "2"}
SEEN: Final = {
    "pending": Seen.PENDING,
    "starting": Seen.PENDING,
    "restarting": Seen.PENDING,
    "stopping": Seen.PENDING,
    "deleting": Seen.PENDING,
    "running": Seen.RUNNING,
    "stopped": Seen.STOPPED,
    "failed": Seen.BROKEN,
}
ENDED: Final = ("cannot_start", "stopped_by_preemption", "stopped_by_host_failure")
"""Reasons after which a machine does not come back: it is given back."""

LEFT: Final = {"address": "floating_ips", "disk": "volumes"}
"""What a machine may leave behind. Both have its name."""


class IbmCloud(CloudApi):
    kind = "ibm"
    title = "IBM Cloud"
    signs = IbmSigner
    base_url = "https://{region}.iaas.cloud.ibm.com/v1"
    services: ClassVar = {"token": "https://iam.cloud.ibm.com"}
    login = "ubuntu"
    codes = ErrorCodes(
        no_room=["cannot_start_capacity", "cannot_start_compute", "insufficient capacity", "out of capacity"],
        quota=["over_quota", "*_quota_exceeded", "quota exceeded"],
        money=["payment_required", "account is suspended"],
        access=["not_authorized", "not_authenticated", "BXNIM0415E"],
    )
    options: ClassVar = {
        "prices": PRICES_OPTION,
        "networks": "For each zone a VPC, whose default security group admits SSH, and a subnet:"
        " `ZONE=VPC/SUBNET,…`. Required",
        "images": "For each region the id of an Ubuntu image with NVIDIA drivers: `REGION=ID,…`. Required",
        "disk_gb": f"{DISK_OPTION}. Default: 100",
    }
    defaults: ClassVar = {"disk_gb": "100"}

    @property
    def regions(self) -> list[str]:
        return sorted({zone.rpartition("-")[0] for zone in self.pairs("networks")})

    def _call(self, method: str, region: str, path: str, **more: Any) -> CloudCall:
        query = {**VERSION, **more.pop("query", {})}
        return CloudCall(method=method, path=path, region=region, query=query, **more)

    def check(self) -> Asking[str]:
        self.pairs("images")
        yield self._call("GET", self.regions[0], "/instances", query={"limit": "1"})
        return f"IBM Cloud accepts the key; regions: {', '.join(self.regions)}"

    def types(self) -> Asking[list[MachineType]]:
        prices = self.set_prices()
        found: list[MachineType] = []
        for region in self.regions:
            listed = yield from self._every(region, "profiles", "/instance/profiles")
            found += [
                self._type(region, each, prices[each["name"]])
                for each in listed
                if each["name"] in prices and each.get("gpu_count")
            ]
        return found

    def _type(self, region: str, each: Any, prices: dict[str, int]) -> MachineType:
        model = each["gpu_model"]
        return self.machine_type(
            each["name"],
            region,
            gpu=(str((model.get("values") or [model.get("value")])[0]), int(each["gpu_memory"]["value"])),
            gpus=int(each["gpu_count"]["value"]),
            vcpus=int(each["vcpu_count"]["value"]),
            ram_bytes=int(each["memory"]["value"]) * GIB,
            prices=prices,
        )

    def machines(self, mark: str) -> Asking[list[Remote]]:
        found: list[Remote] = []
        for region in self.regions:
            listed = yield from self._every(region, "instances")
            ours = [each for each in listed if read_name(mark, each["name"])]
            floating = (yield from self._every(region, "floating_ips")) if ours else []
            addresses = {each["name"]: each["address"] for each in floating if each.get("target")}
            found += [self._remote(mark, region, each, addresses) for each in ours]
        return found

    def _every(self, region: str, name: str, path: str = "") -> Asking[list[Any]]:
        found: list[Any] = []
        start = ""
        while True:
            query = {"limit": "100", **({"start": start} if start else {})}
            reply = yield self._call("GET", region, path or f"/{name}", query=query)
            found += reply.body[name]
            start = token_of_page(str((reply.body.get("next") or {}).get("href", "")), "start")
            if not start:
                return found

    def rent(self, boot: Boot) -> Asking[Remote]:
        rental = boot.rental
        zones = [zone for zone in self.pairs("networks") if zone.rpartition("-")[0] == rental.region]

        def rent_in(zone: str) -> Asking[Remote]:
            body = self._body(boot, zone)
            reply = yield self._call("POST", rental.region, "/instances", body=body, act="launch")
            return self._remote(boot.mark, rental.region, reply.body, {})

        nowhere = f"no zone in {rental.region} is set"
        return (yield from self.in_first_with_room([rental.zone] if rental.zone else zones, rent_in, nowhere))

    def _body(self, boot: Boot, zone: str) -> dict[str, Any]:
        vpc, _, subnet = self.pairs("networks")[zone].partition("/")
        image = self.pairs("images").get(boot.rental.region, "")
        interface = {"subnet": {"id": subnet}, "auto_delete": True, "allow_ip_spoofing": False}
        volume = {"capacity": self.disk_gb, "profile": {"name": "general-purpose"}, "name": boot.name}
        spot = {
            "availability": {"class": "spot"},
            "availability_policy": {"preemption": "stop"},
            "reservation_affinity": {"policy": "disabled"},
        }
        return {
            "name": boot.name,
            "zone": {"name": zone},
            "profile": {"name": boot.rental.type},
            "image": {"id": image},
            "vpc": {"id": vpc},
            "primary_network_attachment": {"name": "first", "virtual_network_interface": interface},
            "boot_volume_attachment": {"volume": volume, "delete_volume_on_instance_delete": True},
            "user_data": boot.cloud_config,
            **(spot if boot.rental.mode == "spot" else {}),
        }

    def complete(self, mark: str, remote: Remote) -> Asking[None]:
        """Give a machine that runs its floating address. The name is unique, so a second one is refused."""
        if remote.endpoints:
            return
        region, _, id = remote.remote_id.partition("/")
        reply = yield self._call("GET", region, f"/instances/{id}", accepts=frozenset({404}))
        if reply.status == 404:
            return
        interface = reply.body["primary_network_attachment"]["virtual_network_interface"]["id"]
        body = {"name": reply.body["name"], "target": {"id": interface}}
        accepts = frozenset({400, 409})
        yield self._call("POST", region, "/floating_ips", body=body, act="change", accepts=accepts)

    def give_back(self, remote_id: str) -> Asking[None]:
        region, _, id = remote_id.partition("/")
        found = yield self._call("GET", region, f"/instances/{id}", accepts=frozenset({404}))
        if (
            found.status < 400
        ):  # addresses first: only the machine tells their name, also when this is repeated
            for each in (yield from self._every(region, "floating_ips")):
                if each["name"] == found.body["name"]:
                    yield delete_call(f"/floating_ips/{each['id']}", region=region, query=VERSION)
        yield delete_call(f"/instances/{id}", region=region, query=VERSION)

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        found: list[Leftover] = []
        for region in self.regions:
            addresses = yield from self._every(region, "floating_ips")
            found += [self._leftover(mark, "address", region, each, each["address"]) for each in addresses]
            disks = yield from self._every(region, "volumes")
            loose = [each for each in disks if not each["volume_attachments"]]
            found += [self._leftover(mark, "disk", region, each, each["name"]) for each in loose]
        return [each for each in found if each.token]

    def _leftover(self, mark: str, kind: str, region: str, each: Any, name: str) -> Leftover:
        return Leftover(
            kind=kind,
            remote_id=f"{region}/{LEFT[kind]}/{each['id']}",
            name=name,
            token=read_name(mark, each["name"]),
            price_micros_per_hour=disk_price("ibm", int(each["capacity"])) if kind == "disk" else None,
            currency=self.currency,
        )

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        region, _, path = leftover.remote_id.partition("/")
        yield delete_call(f"/{path}", region=region, query=VERSION)

    def _remote(self, mark: str, region: str, each: Any, addresses: dict[str, str]) -> Remote:
        reasons = [str(reason["code"]) for reason in each.get("status_reasons") or ()]
        is_over = any(reason.startswith(ENDED) for reason in reasons)
        return self.remote(
            f"{region}/{each['id']}",
            read_name(mark, each["name"]),
            Seen.BROKEN if is_over else SEEN[each["status"]],
            address=addresses.get(each["name"], ""),
            doing=", ".join([each["status"], *reasons]),
            zone=each["zone"]["name"],
            type=each["profile"]["name"],
            since=time_of(each.get("created_at")),
            is_spot=(each.get("availability") or {}).get("class") == "spot",
        )
