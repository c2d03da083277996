"""Genesis Cloud: virtual machines with cloud-init, stop and start, no launch tokens, no spot. API `compute/v1`.

The name of a machine type has its size: `vcpu-8_memory-24g_nvidia-rtx-3090-1`. The API has no prices: the operator sets
them. Calls, fields and states are those of the description that the provider's own client is generated from.
"""

import re
from typing import Any, ClassVar, Final

from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import Asking, CloudCall, delete_call
from teraflock.drivers.clouds.errors import CannotDo, ErrorCodes
from teraflock.drivers.clouds.marks import Boot, read_name
from teraflock.drivers.clouds.model import DISK_OPTION, PRICES_OPTION, CloudApi
from teraflock.drivers.clouds.signing import Bearer, Signer
from teraflock.drivers.clouds.sound import time_of
from teraflock.drivers.rented import Remote
from teraflock.instance.driver import Capability, MachineType, Seen

PAGE: Final = 100
TYPE: Final = re.compile(r"vcpu-(\d+)_memory-(\d+)g(?:_disk-\d+g)?_nvidia-?([a-z0-9-]+?)-(\d+)")
SCRIPT_BYTES_MAX: Final = 65_536
_ON_THE_WAY: Final = (
    "enqueued", "build", "creating", "copying", "updating", "starting", "restarting", "resetting", "stopping",
    "deleting", "unknown",
)  # fmt: skip
SEEN: Final = {
    **dict.fromkeys(_ON_THE_WAY, Seen.PENDING),
    "active": Seen.RUNNING,
    "stopped": Seen.STOPPED,
    "shutoff": Seen.STOPPED,
    "error": Seen.BROKEN,
    "pending_payment": Seen.BROKEN,
}


class GenesisCloud(CloudApi):
    kind = "genesis"
    title = "Genesis Cloud"
    base_url = "https://api.genesiscloud.com/compute/v1"
    login = "ubuntu"
    capabilities = frozenset({Capability.STOP})
    codes = ErrorCodes(
        no_room=["not available", "no capacity", "out of stock"],
        quota=["quota exceeded", "exceeds your quota"],
        money=["pending payment", "payment method"],
    )
    options: ClassVar = {
        "prices": PRICES_OPTION,
        "regions": "Regions to use, separated by commas. Required",
        "image": "The id of an image with NVIDIA drivers. Required",
        "disk_gb": f"{DISK_OPTION}. Default: 80",
    }
    defaults: ClassVar = {"disk_gb": "80"}

    @classmethod
    def signer(cls, secret: str) -> Signer:
        return Bearer(secret, header="X-Auth-Token", prefix="")

    def check(self) -> Asking[str]:
        self.needed("image")
        yield CloudCall(method="GET", path="/instances", query={"page": "1", "per_page": "1"})
        return f"Genesis Cloud accepts the key; types with a price: {', '.join(self.set_prices())}"

    def types(self) -> Asking[list[MachineType]]:
        prices = self.set_prices()
        self.needed("regions")
        found: list[MachineType] = []
        for region in self.regions:
            reply = yield CloudCall(method="GET", path=f"/availability/{region}/instances")
            listed = reply.body["availability"]["instance_types"]
            free = {each["type"] for each in listed if each["available"]}
            found += [self._type(name, region, prices[name]) for name in prices if name in free]
        return found

    def _type(self, name: str, region: str, prices: dict[str, int]) -> MachineType:
        read = TYPE.fullmatch(name)
        if read is None:
            raise CannotDo(f"The type `{name}` in `prices` has no size in its name")
        vcpus, ram_gb, gpu, gpus = read.groups()
        return self.machine_type(
            name,
            region,
            gpu=(gpu.replace("-", " "), 0),
            gpus=int(gpus),
            vcpus=int(vcpus),
            ram_bytes=int(ram_gb) * GIB,
            prices=prices,
        )

    def machines(self, mark: str) -> Asking[list[Remote]]:
        found: list[Remote | None] = []
        page = 0
        while True:
            page += 1
            query = {"page": str(page), "per_page": str(PAGE)}
            reply = yield CloudCall(method="GET", path="/instances", query=query)
            listed = reply.body["instances"]
            found += [self._remote(mark, each) for each in listed]
            if len(listed) < PAGE:
                return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        if len(boot.cloud_config.encode()) > SCRIPT_BYTES_MAX:
            raise CannotDo(
                f"Genesis Cloud accepts {SCRIPT_BYTES_MAX >> 10} KB of first-boot files",
                hint="Let a short user-data script download the rest",
            )
        body = {
            "name": boot.name,
            "hostname": boot.name[:63],
            "region": boot.rental.region,
            "type": boot.rental.type,
            "image": self.needed("image"),
            "disk_size": self.disk_gb,
            "metadata": {"startup_script": boot.cloud_config},
            "billing_type": "on-demand",
        }
        reply = yield CloudCall(method="POST", path="/instances", body=body, act="launch")
        made = self._remote(boot.mark, reply.body["instance"])
        assert made is not None, "a new machine has the name that it was given"
        return made

    def give_back(self, remote_id: str) -> Asking[None]:
        yield delete_call(f"/instances/{remote_id}")

    def stop(self, remote_id: str) -> Asking[None]:
        yield self._action(remote_id, "stop")

    def start(self, remote_id: str) -> Asking[None]:
        yield self._action(remote_id, "start")

    def _action(self, remote_id: str, name: str) -> CloudCall:
        return CloudCall(
            method="POST", path=f"/instances/{remote_id}/actions", body={"action": name}, act="change"
        )

    def _remote(self, mark: str, each: Any) -> Remote | None:
        token = read_name(mark, each["name"])
        if not token:
            return None
        seen = SEEN[each["status"]]
        return self.remote(
            each["id"],
            token,
            seen,
            address=(each.get("public_ip") or "") if seen == Seen.RUNNING else "",
            doing=each["status"],
            zone=each["region"],
            type=each["type"],
            since=time_of(each.get("created_at")),
        )
