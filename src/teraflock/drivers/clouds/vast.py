"""Vast: containers on a market of machines, with bids. No launch tokens. API description of August 2026.

An offer is one machine and is gone once rented, so offers are searched again at each launch. A machine type is a GPU
model and a count (`1x_RTX_4090`), and a region is a country.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from teraflock.base.quantities import MIB
from teraflock.drivers.clouds.calls import Asking, CloudCall, CloudReply, delete_call, every_page
from teraflock.drivers.clouds.cards import card
from teraflock.drivers.clouds.errors import ErrorCodes, no_capacity, one_line
from teraflock.drivers.clouds.marks import Boot, read_label
from teraflock.drivers.clouds.model import DISK_OPTION, CloudApi, Pace, micros_of
from teraflock.drivers.rented import Remote
from teraflock.instance.driver import Capability, Endpoint, MachineType, Rental, Seen
from teraflock.instance.model import SSH_PORT

OFFERS_MAX: Final = 1000
TRIES_MAX: Final = 3
"""Offers that one launch tries in a place: the first may have been rented meanwhile."""
PAGE: Final = "25"
IMAGE: Final = "vastai/base-image:@vastai-automatic-tag"
SEEN: Final[Mapping[str | None, Seen]] = {
    None: Seen.PENDING,
    "created": Seen.PENDING,
    "loading": Seen.PENDING,
    "scheduling": Seen.PENDING,
    "running": Seen.RUNNING,
    "exited": Seen.BROKEN,
    "offline": Seen.BROKEN,
    "stopped": Seen.BROKEN,
}
"""A stopped machine is one that was outbid, since we stop none: it is given back."""
NEVER_STARTS: Final = "OCI runtime create failed"


class VastCloud(CloudApi):
    kind = "vast"
    title = "Vast"
    base_url = "https://console.vast.ai"
    pace = Pace(call_seconds=1.0, launch_seconds=5.0)
    capabilities = frozenset({Capability.BIDS})
    boot_time_max = timedelta(minutes=30)
    options: ClassVar = {
        "image": f"The container image. Default: `{IMAGE}`",
        "disk_gb": f"{DISK_OPTION}. Default: 64",
    }
    defaults: ClassVar = {"image": IMAGE, "disk_gb": "64"}
    codes = ErrorCodes(
        money=["credit", "no credit", "lacks credit"], access=["auth_error", "Invalid user key"]
    )

    def check(self) -> Asking[str]:
        reply = yield CloudCall(method="GET", path="/api/v0/users/current/")
        balance = reply.body.get("credit", reply.body.get("balance"))
        return f"Vast accepts the key; the balance is {balance} USD"

    def types(self) -> Asking[list[MachineType]]:
        body = {**self._search(), "limit": OFFERS_MAX, "num_gpus": {"in": [1, 2, 4, 8]}}
        reply = yield CloudCall(method="POST", path="/api/v0/bundles/", body=body)
        return _types(reply.body["offers"], self.disk_bytes)

    def machines(self, mark: str) -> Asking[list[Remote]]:
        call = CloudCall(method="GET", path="/api/v1/instances/", query={"limit": PAGE})
        listed = yield from every_page(call, "instances", "next_token", after="after_token")
        found = (self._remote(mark, each) for each in listed)
        return [each for each in found if each is not None]

    def rent(self, boot: Boot) -> Asking[Remote]:
        rental = boot.rental
        reply = yield CloudCall(method="POST", path="/api/v0/bundles/", body=self._wanted(boot, rental))
        offers = sorted(reply.body["offers"], key=lambda each: each[_price_name(rental)])
        words = f"no offer of `{rental.type}` in {rental.region}"
        for offer in offers[:TRIES_MAX]:
            accepts = frozenset({400, 404, 410})
            body = self._launch(boot, rental)
            path = f"/api/v0/asks/{offer['id']}/"
            reply = yield CloudCall(method="PUT", path=path, act="launch", accepts=accepts, body=body)
            if reply.status < 400 and reply.body.get("success"):
                return self._rented(reply.body["new_contract"], boot, offer)
            if reply.body and reply.body.get("new_contract"):  # refused, and yet made: it would be billed
                yield from self.give_back(str(reply.body["new_contract"]))
            error = self.error(CloudCall(method="PUT", path=path), reply)
            if not _is_taken(reply):
                raise error
            words = error.sentence
        raise no_capacity(self.title, words)

    def give_back(self, remote_id: str) -> Asking[None]:
        call = delete_call(f"/api/v0/instances/{remote_id}/", body={})
        reply = yield call
        if reply.status == 404 and _code(reply) == "auth_error":  # Vast answers a wrong key with 404
            raise self.error(call, reply)

    def _search(self) -> dict[str, Any]:
        return {
            "type": "ondemand",
            "verified": {"eq": True},
            "rentable": {"eq": True},
            "direct_port_count": {"gte": 1},
            "disk_space": {"gte": self.disk_gb},
            "allocated_storage": self.disk_gb,
            "order": [["dph_total", "asc"], ["id", "asc"]],
        }

    def _wanted(self, boot: Boot, rental: Rental) -> dict[str, Any]:
        count, _, gpu = rental.type.partition("x_")
        limit = rental.price_limit_micros_per_hour
        bid = rental.mode == "bid"
        return {
            **self._search(),
            "type": "bid" if bid else "ondemand",
            "limit": TRIES_MAX * 4,
            "gpu_name": {"in": [gpu.replace("_", " ")]},
            "num_gpus": {"in": [int(count)]},
            "geolocation": {"in": [rental.region]},
            "cpu_cores_effective": {"gte": boot.machine.vcpus},
            "cpu_ram": {"gte": boot.machine.ram_bytes // MIB},
            **({"dph_total": {"lte": limit / 10**6}} if limit is not None and not bid else {}),
        }

    def _launch(self, boot: Boot, rental: Rental) -> dict[str, Any]:
        bid = rental.bid_micros_per_hour
        return {
            "image": self.option("image"),
            "disk": self.disk_gb,
            "label": boot.label,
            "runtype": "ssh_direct",
            "onstart": boot.script,
            "target_state": "running",
            "cancel_unavail": True,  # otherwise a low bid leaves a stopped machine that is billed
            **({"price": bid / 10**6} if bid is not None else {}),
        }

    def _rented(self, contract: int, boot: Boot, offer: Any) -> Remote:
        bid = boot.rental.bid_micros_per_hour
        price = bid if bid is not None else micros_of(offer["dph_total"])
        return self.remote(
            str(contract), boot.token, Seen.PENDING, zone=boot.rental.region, price_micros_per_hour=price
        )

    def _remote(self, mark: str, each: Any) -> Remote | None:
        ours = read_label(mark, each.get("label") or "")
        if ours is None:
            return None
        message = str(each.get("status_msg") or "")
        seen = SEEN.get(each.get("actual_status"), Seen.PENDING)
        states = {each.get("cur_state"), each.get("next_state"), each.get("intended_status")}
        is_outbid = states == {"stopped"}
        began = each.get("start_date")
        return self.remote(
            str(each["id"]),
            ours[1],
            Seen.BROKEN if is_outbid or NEVER_STARTS in message else seen,
            doing=one_line(message),
            zone=_country(each) if each.get("geolocation") else "",
            price_micros_per_hour=micros_of(each["dph_total"]),
            endpoints=_endpoints(each),
            since=datetime.fromtimestamp(began, UTC) if began else None,
        )


def _price_name(rental: Rental) -> str:
    return "min_bid" if rental.mode == "bid" else "dph_total"


def _code(reply: CloudReply) -> str:
    return str(reply.body.get("error", "")) if isinstance(reply.body, dict) else ""


def _is_taken(reply: CloudReply) -> bool:
    """Whether the offer is gone, or the bid was too low for it: another offer may do."""
    said = f"{_code(reply)} {reply.body.get('msg', '') if isinstance(reply.body, dict) else ''}"
    return "no_such_ask" in said or "invalid_price" in said or reply.status < 400


def _types(offers: list[Any], disk_bytes: int) -> list[MachineType]:
    """One type per GPU model, count and country. All countries of a type promise what its weakest offer has."""
    named: dict[str, list[Any]] = {}
    for each in offers:
        named.setdefault(f"{each['num_gpus']}x_{each['gpu_name'].replace(' ', '_')}", []).append(each)
    found = []
    for name, same in named.items():
        gpu, _ = card(same[0]["gpu_name"], round(same[0]["gpu_ram"] / 1024))
        by_country: dict[str, list[Any]] = {}
        for each in same:
            by_country.setdefault(_country(each), []).append(each)
        found += [
            MachineType(
                name=name,
                region=country,
                gpu=gpu,
                gpus=int(same[0]["num_gpus"]),
                gpu_memory_bytes=min(int(each["gpu_ram"]) for each in same) * MIB,
                vcpus=max(int(min(each["cpu_cores_effective"] for each in same)), 1),
                ram_bytes=min(int(each["cpu_ram"]) for each in same) * MIB,
                disk_bytes=disk_bytes,
                prices={
                    "on-demand": micros_of(min(each["dph_total"] for each in there)),
                    "bid": micros_of(min(each["min_bid"] for each in there)),
                },
                currency=VastCloud.currency,
            )
            for country, there in by_country.items()
        ]
    return found


def _country(offer: Any) -> str:
    """The code at the end of `Atlantis, AT`."""
    return str(offer.get("geolocation") or "").rpartition(",")[2].strip() or "any"


def _endpoints(each: Any) -> dict[int, Endpoint]:
    """The machine's own address, or Vast's proxy where it has none."""
    direct = (each.get("ports") or {}).get("22/tcp")
    if direct and each.get("public_ipaddr"):
        return {SSH_PORT: Endpoint(each["public_ipaddr"].strip(), int(direct[0]["HostPort"]))}
    if each.get("ssh_host") and each.get("ssh_port"):
        return {SSH_PORT: Endpoint(each["ssh_host"], int(each["ssh_port"]))}
    return {}
