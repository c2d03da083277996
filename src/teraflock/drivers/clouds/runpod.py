"""RunPod: containers ("pods") in its secure cloud. No launch tokens, no first-boot script. REST API v2.

The machine generates its own host key: the first key that it shows is trusted. It gets its programs over SSH, once it
answers. A machine type is a count and RunPod's
id of the GPU with underscores (`1x_NVIDIA_L4`), a region is a data center.
"""

from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from teraflock.base.errors import TeraflockError
from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import Asking, CloudCall, CloudReply, delete_call
from teraflock.drivers.clouds.cards import card
from teraflock.drivers.clouds.errors import ErrorCodes, no_capacity
from teraflock.drivers.clouds.marks import Boot, read_label
from teraflock.drivers.clouds.model import DISK_OPTION, CloudApi, Pace, micros_of
from teraflock.drivers.rented import Remote
from teraflock.instance.driver import Endpoint, MachineType, Seen
from teraflock.instance.model import SSH_PORT

COUNTS: Final = (1, 2, 4, 8)
IMAGE: Final = "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404"
VCPUS_PER_GPU: Final = 4
RAM_BYTES_PER_GPU: Final = 16 * GIB
"""RunPod's catalog has neither vCPUs nor memory. These are nominal, and less than its machines have."""
SEEN: Final = {
    "PROVISIONING": Seen.PENDING,
    "STARTING": Seen.PENDING,
    "RUNNING": Seen.RUNNING,
    "EXITED": Seen.BROKEN,
    "ERROR": Seen.BROKEN,
}
ENDED: Final = ("TERMINATED",)
"""`TERMINATED` is missing on purpose: such a pod no longer exists. We stop none, so one that exited is lost."""


class RunPodCloud(CloudApi):
    kind = "runpod"
    title = "RunPod"
    base_url = "https://api.runpod.io/v2"
    pace = Pace(call_seconds=1.0, launch_seconds=2.0)
    capabilities = frozenset()
    injects_host_key = False
    runs_first_boot = False
    boot_time_max = timedelta(minutes=20)
    options: ClassVar = {
        "image": f"The container image. It must start an SSH server from `PUBLIC_KEY`. Default: `{IMAGE}`",
        "disk_gb": f"{DISK_OPTION}. Default: 64",
    }
    defaults: ClassVar = {"image": IMAGE, "disk_gb": "64"}
    codes = ErrorCodes(money=["balance is", "balance too low"])

    def types(self) -> Asking[list[MachineType]]:
        query = {"include": "AVAILABILITY", "product": "POD", "cloud": "SECURE"}
        reply = yield CloudCall(method="GET", path="/catalog/gpus", query=query)
        return [each for gpu in reply.body["gpus"] for each in _types(gpu, self.disk_bytes)]

    def machines(self, mark: str) -> Asking[list[Remote]]:
        reply = yield CloudCall(method="GET", path="/pods")
        found = (self._remote(mark, each) for each in reply.body["pods"])
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        count, _, gpu = boot.rental.type.partition("x_")
        body = {
            "name": boot.label,
            "image": self.option("image"),
            "gpu": {"id": gpu.replace("_", " "), "count": int(count)},
            "cloud": "SECURE",
            "dataCenterIds": [boot.rental.region],
            "disk": self.disk_gb,
            "ports": ["22/tcp"],
            "startSsh": True,
            "env": {"PUBLIC_KEY": "\n".join([boot.login_key, *boot.machine.authorized_keys])},
        }
        reply = yield CloudCall(method="POST", path="/pods", act="launch", body=body)
        made = self._remote(boot.mark, reply.body)
        assert made is not None, "a new pod has the name that it was given"
        return made

    def give_back(self, remote_id: str) -> Asking[None]:
        yield delete_call(f"/pods/{remote_id}")

    def error(self, call: CloudCall, reply: CloudReply) -> TeraflockError:
        """RunPod reports missing capacity as a bad request without a list of errors."""
        errors = reply.body.get("errors") if isinstance(reply.body, dict) else None
        found = super().error(call, reply)
        if reply.status == 400 and call.act == "launch" and not errors and "paid" not in found.sentence:
            return no_capacity(self.title, self.said(reply)[1])
        return found

    def said(self, reply: CloudReply) -> tuple[str, str]:
        body = reply.body if isinstance(reply.body, dict) else {}
        words = str(body.get("detail") or body.get("title") or reply.text)
        return "", "; ".join([words, *map(str, body.get("errors") or ())])

    def _remote(self, mark: str, each: Any) -> Remote | None:
        ours, seen = read_label(mark, each["name"]), SEEN.get(each["status"], Seen.PENDING)
        if ours is None or each["status"] in ENDED:
            return None
        direct = (each.get("ssh") or {}).get("direct")
        return self.remote(
            each["id"],
            ours[1],
            seen,
            doing=each["status"].lower(),
            zone=each.get("dataCenterId") or "",
            price_micros_per_hour=micros_of(each["cost"]),
            endpoints={SSH_PORT: Endpoint(direct["host"], int(direct["port"]))} if direct else {},
            since=datetime.fromisoformat(each["createdAt"]),
        )


def _types(gpu: Any, disk_bytes: int) -> list[MachineType]:
    most = gpu["maxCount"]["secure"] if isinstance(gpu["maxCount"], dict) else gpu["maxCount"]
    id, memory_bytes = card(gpu["name"], int(gpu["memory"]))
    return [
        MachineType(
            name=f"{count}x_{gpu['id'].replace(' ', '_')}",
            region=center["id"],
            gpu=id,
            gpus=count,
            gpu_memory_bytes=memory_bytes,
            vcpus=VCPUS_PER_GPU * count,
            ram_bytes=RAM_BYTES_PER_GPU * count,
            disk_bytes=disk_bytes,
            prices={"on-demand": micros_of(gpu["price"]["secure"]) * count},
            currency=RunPodCloud.currency,
        )
        for count in COUNTS
        if gpu["secure"] and count <= most
        for center in gpu.get("dataCenters") or ()
        if center.get("availability", "NONE") != "NONE"
    ]
