"""Lambda: machines with cloud-init, no launch tokens, no stop, no spot. API description 1.8.3."""

from typing import Any, ClassVar, Final

from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.calls import GONE, Asking, CloudCall, delete_call
from teraflock.drivers.clouds.cards import card
from teraflock.drivers.clouds.errors import ErrorCodes
from teraflock.drivers.clouds.marks import Boot, read_tags
from teraflock.drivers.clouds.model import CloudApi, Pace
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import MachineType, Seen

MICROS_PER_CENT: Final = 10_000
SEEN: Final = {
    "booting": Seen.PENDING,
    "active": Seen.RUNNING,
    "unhealthy": Seen.BROKEN,
    "terminating": Seen.PENDING,
}
ENDED: Final = ("terminated", "preempted")
"""`terminated` and `preempted` are missing on purpose: such a machine no longer exists."""


class LambdaCloud(CloudApi):
    kind = "lambda"
    title = "Lambda"
    base_url = "https://cloud.lambda.ai/api/v1"
    login = "ubuntu"
    pace = Pace(call_seconds=1.0, launch_seconds=12.0)
    codes = ErrorCodes(
        no_room=["instance-operations/launch/insufficient-capacity"],
        quota=["global/quota-exceeded"],
        money=["global/account-inactive", "global/invalid-address"],
    )
    options: ClassVar = {"image_family": "The image family. Default: the latest Lambda Stack"}

    def types(self) -> Asking[list[MachineType]]:
        reply = yield CloudCall(method="GET", path="/instance-types")
        return [each for offer in reply.body["data"].values() for each in _types(offer)]

    def machines(self, mark: str) -> Asking[list[Remote]]:
        reply = yield CloudCall(method="GET", path="/instances")
        found = (self._remote(mark, each) for each in reply.body["data"])
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        key = yield from _key_name(boot)
        family = self.option("image_family")
        body = {
            "region_name": boot.rental.region,
            "instance_type_name": boot.rental.type,
            "ssh_key_names": [key],
            "name": boot.machine.hostname,
            "hostname": boot.machine.hostname,
            "user_data": boot.cloud_config,
            "tags": [{"key": name, "value": value} for name, value in boot.tags.items()],
            **({"image": {"family": family}} if family else {}),
        }
        reply = yield CloudCall(method="POST", path="/instance-operations/launch", act="launch", body=body)
        (id,) = reply.body["data"]["instance_ids"]
        return self.remote(id, boot.token, Seen.PENDING, zone=boot.rental.region)

    def give_back(self, remote_id: str) -> Asking[None]:
        path, body = "/instance-operations/terminate", {"instance_ids": [remote_id]}
        yield CloudCall(method="POST", path=path, act="change", accepts=GONE, body=body)

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        reply = yield CloudCall(method="GET", path="/ssh-keys")
        ours = [each for each in reply.body["data"] if each["name"] == key_name(mark)]
        return [Leftover(kind="ssh-key", remote_id=each["id"], name=each["name"]) for each in ours]

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        yield delete_call(f"/ssh-keys/{leftover.remote_id}")

    def _remote(self, mark: str, each: Any) -> Remote | None:
        token = read_tags(mark, {tag["key"]: tag["value"] for tag in each.get("tags") or ()})
        seen = SEEN.get(each["status"], Seen.PENDING)
        if not token or each["status"] in ENDED:
            return None
        return self.remote(
            each["id"],
            token,
            seen,
            address=each.get("ip") or "",
            doing=each["status"],
            zone=each["region"]["name"],
            price_micros_per_hour=int(each["instance_type"]["price_cents_per_hour"]) * MICROS_PER_CENT,
        )


def key_name(mark: str) -> str:
    return f"teraflock-{mark}"


def _key_name(boot: Boot) -> Asking[str]:
    """Register the server's login key unless it is there. Lambda accepts exactly one key per machine."""
    name = key_name(boot.mark)
    listed = yield CloudCall(method="GET", path="/ssh-keys")
    mine = [each for each in listed.body["data"] if each["name"] == name]
    if mine and _blob(mine[0]["public_key"]) == _blob(boot.login_key):
        return name
    for each in mine:  # of an older installation key
        yield delete_call(f"/ssh-keys/{each['id']}")
    body = {"name": name, "public_key": boot.login_key}
    yield CloudCall(method="POST", path="/ssh-keys", act="change", body=body, accepts=frozenset({400, 409}))
    return name


def _blob(public_key: str) -> list[str]:
    """Type and key without the comment."""
    return public_key.split()[:2]


def _types(offer: Any) -> list[MachineType]:
    kind, specs = offer["instance_type"], offer["instance_type"]["specs"]
    gpus = int(specs["gpus"])
    gpu, memory_bytes = card(str(kind.get("gpu_description", "")) if gpus else "")
    return [
        MachineType(
            name=kind["name"],
            region=region["name"],
            gpu=gpu,
            gpus=gpus,
            gpu_memory_bytes=memory_bytes,
            vcpus=int(specs["vcpus"]),
            ram_bytes=int(specs["memory_gib"]) * GIB,
            disk_bytes=int(specs["storage_gib"]) * GIB,
            prices={"on-demand": int(kind["price_cents_per_hour"]) * MICROS_PER_CENT},
            currency=LambdaCloud.currency,
        )
        for region in offer["regions_with_capacity_available"]
    ]
