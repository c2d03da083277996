"""The free room of a host: what it has left, and what it lacks for an instance. Pure."""

from collections.abc import Mapping

import msgspec

from teraflock.base.quantities import bytes_text
from teraflock.base.size import Size
from teraflock.fleet.model import HostId, HostState


class Obstacle(msgspec.Struct, frozen=True):
    """Why a host is not used."""

    reason: str
    """Without amounts: a tenant does not see how busy other tenants are."""
    details: str = ""
    """With amounts, for operators."""


class Room(msgspec.Struct, kw_only=True):
    """What a host has left. Taken from while a batch is placed, so it is not frozen."""

    host_id: HostId
    name: str
    site: str
    threads: int
    """Of the host's processors: one instance has no use for more, whatever is promised to all of them."""
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    free_gpus: dict[str, int]
    """By the catalog's id of the card."""
    gpus_total: int
    ram_bytes_total: int = 0
    """What instances can have on the empty host. A card's part of it is what the default shape with that card has."""
    region: str = ""
    labels: Mapping[str, str] = {}
    """Empty unless they were read."""
    state: HostState = HostState.READY
    reserved_for: str = ""
    """The queued launch that the host is kept free for."""

    def fits(self, need: Size) -> bool:
        return (
            self.ram_bytes >= need.ram_bytes
            and min(self.vcpus, self.threads) >= need.vcpus
            and self.disk_bytes >= need.disk_bytes
            and (not need.gpus or self.free_gpus.get(need.gpu, 0) >= need.gpus)
        )

    def lacks(self, need: Size) -> Obstacle | None:
        """What the host has too little of. None: the instance fits."""
        if self.fits(need):
            return None
        free = self.free_gpus.get(need.gpu, 0)
        if need.gpus and need.gpu not in self.free_gpus:
            return Obstacle(f"no {need.gpu}")
        if need.gpus and free < need.gpus:
            return Obstacle(f"not enough free {need.gpu}", f"{free} of {need.gpus} free")
        if self.threads < need.vcpus:
            return Obstacle("too few processor threads", f"{self.threads} of {need.vcpus}")
        if self.vcpus < need.vcpus:
            return Obstacle("not enough free vCPUs", f"{max(0, self.vcpus)} of {need.vcpus} free")
        if self.ram_bytes < need.ram_bytes:
            free_text = bytes_text(max(0, self.ram_bytes))
            return Obstacle("not enough free memory", f"{free_text} of {bytes_text(need.ram_bytes)} free")
        free_text = bytes_text(max(0, self.disk_bytes))
        return Obstacle("not enough free disk", f"{free_text} of {bytes_text(need.disk_bytes)} free")

    def capacity(self, need: Size) -> int:
        """How many instances of this size fit."""
        if not self.fits(need):
            return 0
        parts = [
            (self.vcpus, need.vcpus),
            (self.ram_bytes, need.ram_bytes),
            (self.disk_bytes, need.disk_bytes),
            (self.free_gpus.get(need.gpu, 0), need.gpus),
        ]
        return min(have // part for have, part in parts if part)

    def take(self, need: Size) -> None:
        self.vcpus -= need.vcpus
        self.ram_bytes -= need.ram_bytes
        self.disk_bytes -= need.disk_bytes
        if need.gpus:
            self.free_gpus[need.gpu] -= need.gpus

    def give_back(self, held: Size) -> None:
        """The opposite of `take`."""
        self.vcpus += held.vcpus
        self.ram_bytes += held.ram_bytes
        self.disk_bytes += held.disk_bytes
        if held.gpus:
            self.free_gpus[held.gpu] = self.free_gpus.get(held.gpu, 0) + held.gpus

    def tightness(self, need: Size) -> tuple[float, int, int, int, HostId]:
        """Smaller is better: free cards stranded, cards on a host for an instance without cards, free cards, free
        memory. The id makes the order total."""
        free = sum(self.free_gpus.values())
        per_card = self.ram_bytes_total / self.gpus_total if self.gpus_total else 0.0
        before = stranded(free, self.ram_bytes, per_card)
        after = stranded(free - need.gpus, self.ram_bytes - need.ram_bytes, per_card)
        spared = 0 if need.gpus else self.gpus_total
        return (round(after - before, 3), spared, free, self.ram_bytes, self.host_id)


def stranded(cards: float, have: float, need_per_card: float) -> float:
    """The free cards that cannot be used, because the host has too few processors or too little memory left."""
    return max(0.0, cards - have / need_per_card) if need_per_card else 0.0
