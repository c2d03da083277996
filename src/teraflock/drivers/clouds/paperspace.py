"""Paperspace: virtual machines with a startup script, stop and start, no launch tokens, no spot. API `v1`.

SSH keys and the host key reach a machine only by a startup script. Each machine has one of its own, which is deleted
with it. The API has no prices before a launch: the operator sets them.
"""

from datetime import datetime
from typing import Any, ClassVar, Final

from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import Asking, CloudCall, delete_call, every_page
from teraflock.drivers.clouds.errors import CannotDo, ErrorCodes
from teraflock.drivers.clouds.marks import Boot, read_label
from teraflock.drivers.clouds.model import DISK_OPTION, PRICES_OPTION, CloudApi, micros_of
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import Capability, MachineType, Seen
from teraflock.instance.engine_errors import EngineRefused

PAGE: Final = {"limit": "100"}
TEMPLATE: Final = "ML-in-a-Box"
CARDS: Final = {
    "P4000": ("Quadro P4000", 8, 8, 30), "P5000": ("Quadro P5000", 16, 8, 30), "P6000": ("Quadro P6000", 24, 8, 30),
    "RTX4000": ("Quadro RTX 4000", 8, 8, 30), "RTX5000": ("Quadro RTX 5000", 16, 8, 30),
    "A4000": ("RTX A4000", 16, 8, 45), "A5000": ("RTX A5000", 24, 8, 45), "A6000": ("RTX A6000", 48, 8, 45),
    "V100": ("V100", 16, 8, 30), "V100-32G": ("V100", 32, 8, 30), "A100": ("A100", 40, 12, 90),
    "A100-80G": ("A100", 80, 12, 90), "H100": ("H100", 80, 20, 250),
}  # fmt: skip
"""By machine type: card, its GB, vCPUs and GB of memory per card. A type with several cards ends in `x4`."""
SEEN: Final = {
    "off": Seen.STOPPED,
    "starting": Seen.PENDING,
    "stopping": Seen.PENDING,
    "restarting": Seen.PENDING,
    "serviceready": Seen.PENDING,
    "ready": Seen.RUNNING,
    "upgrading": Seen.PENDING,
    "provisioning": Seen.PENDING,
}


class PaperspaceCloud(CloudApi):
    kind = "paperspace"
    title = "Paperspace"
    base_url = "https://api.paperspace.com/v1"
    capabilities = frozenset({Capability.STOP})
    codes = ErrorCodes(
        no_room=["out of capacity", "not available in", "no capacity"],
        quota=["limit reached", "machine limit", "increase your limit"],
        money=["payment method", "add a credit card", "billing information"],
        access=["UNAUTHORIZED"],
    )
    options: ClassVar = {
        "prices": PRICES_OPTION,
        "regions": "Regions to use, separated by commas. Default: `ny2,ca1,ams1`",
        "template": f"The beginning of the template's name. Default: `{TEMPLATE}`",
        "disk_gb": f"{DISK_OPTION}: 50, 100, 250, 500, 1000 or 2000. Default: 100",
    }
    defaults: ClassVar = {"regions": "ny2,ca1,ams1", "template": TEMPLATE, "disk_gb": "100"}

    def check(self) -> Asking[str]:
        yield CloudCall(method="GET", path="/machines", query={"limit": "1"})
        return f"Paperspace accepts the key; types with a price: {', '.join(self.set_prices())}"

    def types(self) -> Asking[list[MachineType]]:
        found: list[MachineType] = []
        for name, prices in self.set_prices().items():
            model, _, count = name.partition("x")
            if model not in CARDS:
                raise CannotDo(
                    f"Unknown machine type `{name}` in `prices`", hint=f"Known: {', '.join(CARDS)}"
                )
            gpu, gb, vcpus, ram_gb = CARDS[model]
            gpus = int(count or 1)
            for region in self.regions:
                query = {"machineType": name, "region": region}
                reply = yield CloudCall(method="GET", path="/machine-availability", query=query)
                if reply.body["available"]:
                    size = {"vcpus": vcpus * gpus, "ram_bytes": ram_gb * gpus * GIB}
                    found.append(
                        self.machine_type(name, region, gpu=(gpu, gb), gpus=gpus, prices=prices, **size)
                    )
        return found

    def machines(self, mark: str) -> Asking[list[Remote]]:
        call = CloudCall(method="GET", path="/machines", query=PAGE)
        listed = yield from every_page(call, "items", "nextPage", after="after")
        found = (self._remote(mark, each) for each in listed)
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        template = yield from self._template(boot.rental.type)
        script = yield from self._script(boot)
        body = {
            "name": boot.label,
            "machineType": boot.rental.type,
            "templateId": template,
            "region": boot.rental.region,
            "diskSize": self.disk_gb,
            "publicIpType": "dynamic",
            "startupScriptId": script,
            "startOnCreate": True,
            "emailPassword": False,
        }
        try:
            reply = yield CloudCall(method="POST", path="/machines", body=body, act="launch")
        except EngineRefused:  # nothing was made, so nothing uses the script
            yield delete_call(f"/startup-scripts/{script}")
            raise
        made = self._remote(boot.mark, reply.body["data"])
        assert made is not None, "a new machine has the name that it was given"
        return made

    def _template(self, type: str) -> Asking[str]:
        call = CloudCall(method="GET", path="/os-templates", query=PAGE)
        listed = yield from every_page(call, "items", "nextPage", after="after")
        name = self.option("template")
        fitting = [
            each["id"]
            for each in listed
            if each["name"].startswith(name)
            and any(
                one["machineTypeLabel"] == type and one["isAvailable"]
                for one in each["availableMachineTypes"]
            )
        ]
        if not fitting:
            raise CannotDo(
                f"Paperspace has no template `{name}` for `{type}`", hint="Set the option `template`"
            )
        return str(fitting[0])

    def _script(self, boot: Boot) -> Asking[str]:
        """The machine's own startup script. One that an earlier attempt made is used again."""
        scripts = yield from self._scripts()
        mine = [each["id"] for each in scripts if each["name"] == boot.label]
        if mine:
            return str(mine[0])
        body = {"name": boot.label, "script": boot.script, "isRunOnce": False}
        reply = yield CloudCall(method="POST", path="/startup-scripts", body=body, act="change")
        return str(reply.body["id"])

    def _scripts(self) -> Asking[list[Any]]:
        call = CloudCall(method="GET", path="/startup-scripts", query=PAGE)
        found = yield from every_page(call, "items", "nextPage", after="after")
        return found

    def give_back(self, remote_id: str) -> Asking[None]:
        yield delete_call(f"/machines/{remote_id}")
        for each in (yield from self._scripts()):
            if remote_id in each["assignedMachineIds"]:
                yield delete_call(f"/startup-scripts/{each['id']}")

    def stop(self, remote_id: str) -> Asking[None]:
        yield CloudCall(method="PATCH", path=f"/machines/{remote_id}/stop", act="change")

    def start(self, remote_id: str) -> Asking[None]:
        yield CloudCall(method="PATCH", path=f"/machines/{remote_id}/start", act="change")

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        scripts = yield from self._scripts()
        return [
            Leftover(kind="startup-script", remote_id=each["id"], name=each["name"], token=ours[1])
            for each in scripts
            if (ours := read_label(mark, each["name"]))
        ]

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        yield delete_call(f"/startup-scripts/{leftover.remote_id}")

    def _remote(self, mark: str, each: Any) -> Remote | None:
        ours = read_label(mark, each["name"])
        if ours is None or each.get("dtDeleted"):
            return None
        seen = SEEN[each["state"]]
        return self.remote(
            each["id"],
            ours[1],
            seen,
            address=(each.get("publicIp") or "") if seen == Seen.RUNNING else "",
            doing=each["state"],
            zone=each["region"],
            price_micros_per_hour=micros_of(each["usageRate"]),
            since=datetime.fromisoformat(each["dtCreated"]),
        )
