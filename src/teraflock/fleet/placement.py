"""Chooses hosts for instances from their free room. It knows no database.

An instance goes where it strands the fewest free cards, that is, where enough memory stays beside them. Among equal
hosts, an instance without cards goes to a host without cards, and then the tightest fit wins, so that large requests
find whole hosts.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

import msgspec

from teraflock.base.quantities import GIB
from teraflock.base.size import Size
from teraflock.fleet.model import HostId

RAM_BYTES_OF_HOUSE = GIB  # kept back on every host for its own system and the engine


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How far a host's parts are promised more than once. Cards and memory never are."""

    vcpu_overcommit: float = 16.0
    """Virtual processors per real one; most wait for disks, cards and people."""
    disk_overcommit: float = 4.0
    """Disks are thin: they take room as they are filled. A full pool is told."""


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

    def fits(self, need: Size) -> bool:
        return (
            self.ram_bytes >= need.ram_bytes
            and min(self.vcpus, self.threads) >= need.vcpus
            and self.disk_bytes >= need.disk_bytes
            and (not need.gpus or self.free_gpus.get(need.gpu, 0) >= need.gpus)
        )

    def take(self, need: Size) -> None:
        self.vcpus -= need.vcpus
        self.ram_bytes -= need.ram_bytes
        self.disk_bytes -= need.disk_bytes
        if need.gpus:
            self.free_gpus[need.gpu] -= need.gpus

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


def choose(rooms: Iterable[Room], need: Size) -> Room | None:
    """The host that fits tightest. Takes nothing from it."""
    return min(
        (room for room in rooms if room.fits(need)), key=lambda room: room.tightness(need), default=None
    )


def choose_many(rooms: Sequence[Room], need: Size, count: int) -> list[Room] | None:
    """A host for each of `count` equal instances, as if `choose` chose them one after another, or None if not all fit.
    Takes them from the rooms."""
    chosen: list[Room] = []
    fitting = [(room.tightness(need), room) for room in rooms if room.fits(need)]
    heapify(fitting)
    while fitting and len(chosen) < count:
        _, room = heappop(fitting)
        room.take(need)
        chosen.append(room)
        if room.fits(need):
            heappush(fitting, (room.tightness(need), room))
    return chosen if len(chosen) == count else None
