"""Lambda: machines with cloud-init, no launch tokens, no stop, no spot. API description 1.8.3."""

from typing import Any, ClassVar, Final

from teraflock.base.errors import TeraflockError
from teraflock.base.quantities import GIB
from teraflock.drivers.clouds.cards import card
from teraflock.drivers.clouds.model import (
    Asking,
    Boot,
    CloudApi,
    CloudCall,
    CloudReply,
    Pace,
    common_error,
    names,
    no_capacity,
    no_money,
    over_quota,
)
from teraflock.drivers.rented import Remote
from teraflock.instance.account.model import Leftover
from teraflock.instance.driver import Endpoint, MachineType, Seen
from teraflock.instance.model import SSH_PORT

MARK: Final = "teraflock"
TOKEN: Final = "teraflock-token"  # noqa: S105 -- the name of a tag
MICROS_PER_CENT: Final = 10_000
SEEN: Final = {
    "booting": Seen.PENDING,
    "active": Seen.RUNNING,
    "unhealthy": Seen.BROKEN,
    "terminating": Seen.PENDING,
}
"""`terminated` and `preempted` are missing on purpose: such a machine no longer exists."""


class LambdaCloud(CloudApi):
    kind = "lambda"
    title = "Lambda"
    base_url = "https://cloud.lambda.ai/api/v1"
    login = "ubuntu"
    pace = Pace(call_seconds=1.0, launch_seconds=12.0)
    options: ClassVar = {"image_family": "The image family. Default: the latest Lambda Stack"}

    def check(self) -> Asking[str]:
        reply = yield CloudCall(method="GET", path="/instance-types")
        return f"Lambda offers {names(_types(reply.body))} with free capacity"

    def types(self) -> Asking[list[MachineType]]:
        reply = yield CloudCall(method="GET", path="/instance-types")
        return _types(reply.body)

    def machines(self, mark: str) -> Asking[list[Remote]]:
        reply = yield CloudCall(method="GET", path="/instances")
        found = (_remote(mark, each) for each in reply.body["data"])
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        rental = boot.machine.rental
        assert rental is not None, "the engine rents only what has a rental"
        key = yield from _key_name(boot)
        family = self._options.get("image_family", "")
        reply = yield CloudCall(
            method="POST",
            path="/instance-operations/launch",
            act="launch",
            body={
                "region_name": rental.region,
                "instance_type_name": rental.type,
                "ssh_key_names": [key],
                "name": boot.machine.hostname,
                "hostname": boot.machine.hostname,
                "user_data": boot.cloud_config,
                "tags": [{"key": MARK, "value": boot.mark}, {"key": TOKEN, "value": boot.token}],
                **({"image": {"family": family}} if family else {}),
            },
        )
        (id,) = reply.body["data"]["instance_ids"]
        return Remote(
            remote_id=id,
            instance_id=boot.machine.id,
            token=boot.token,
            seen=Seen.PENDING,
            zone=rental.region,
            currency=self.currency,
        )

    def give_back(self, remote_id: str) -> Asking[None]:
        yield CloudCall(
            method="POST",
            path="/instance-operations/terminate",
            act="change",
            accepts=frozenset({404}),
            body={"instance_ids": [remote_id]},
        )

    def leftovers(self, mark: str) -> Asking[list[Leftover]]:
        reply = yield CloudCall(method="GET", path="/ssh-keys")
        ours = [each for each in reply.body["data"] if each["name"] == key_name(mark)]
        return [Leftover(kind="ssh-key", remote_id=each["id"], name=each["name"]) for each in ours]

    def remove_leftover(self, leftover: Leftover) -> Asking[None]:
        path = f"/ssh-keys/{leftover.remote_id}"
        yield CloudCall(method="DELETE", path=path, act="change", accepts=frozenset({404}))

    def error(self, call: CloudCall, reply: CloudReply) -> TeraflockError:
        error = reply.body.get("error", {}) if isinstance(reply.body, dict) else {}
        code, words = str(error.get("code", "")), str(error.get("message", ""))
        if code == "instance-operations/launch/insufficient-capacity":
            return no_capacity(self, words)
        if code == "global/quota-exceeded":
            return over_quota(self, words)
        if code in ("global/account-inactive", "global/invalid-address"):
            return no_money(self, words)
        return common_error(self, reply, words or reply.text)


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
        path = f"/ssh-keys/{each['id']}"
        yield CloudCall(method="DELETE", path=path, act="change", accepts=frozenset({404}))
    body = {"name": name, "public_key": boot.login_key}
    yield CloudCall(method="POST", path="/ssh-keys", act="change", body=body, accepts=frozenset({400, 409}))
    return name


def _blob(public_key: str) -> list[str]:
    """Type and key without the comment."""
    return public_key.split()[:2]


def _types(body: Any) -> list[MachineType]:
    found = []
    for each in body["data"].values():
        kind, specs = each["instance_type"], each["instance_type"]["specs"]
        gpus = int(specs["gpus"])
        gpu, memory_bytes = card(str(kind.get("gpu_description", "")) if gpus else "")
        found += [
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
            for region in each["regions_with_capacity_available"]
        ]
    return found


def _remote(mark: str, each: Any) -> Remote | None:
    tags = {tag["key"]: tag["value"] for tag in each.get("tags") or ()}
    seen = SEEN.get(each["status"])
    if tags.get(MARK) != mark or not tags.get(TOKEN) or seen is None:
        return None
    address = each.get("ip") or ""
    token = tags[TOKEN]
    return Remote(
        remote_id=each["id"],
        instance_id=token.partition(".")[0],
        token=token,
        seen=seen,
        doing="" if each["status"] == "active" else str(each["status"]),
        zone=each["region"]["name"],
        price_micros_per_hour=int(each["instance_type"]["price_cents_per_hour"]) * MICROS_PER_CENT,
        currency=LambdaCloud.currency,
        endpoints={SSH_PORT: Endpoint(address, SSH_PORT)} if address else {},
        user=LambdaCloud.login,
    )
