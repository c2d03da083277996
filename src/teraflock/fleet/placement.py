"""Who is placed where. Knows no database: takes the room there is and says which host.

Best fit: cards first, then the tightest host that has room, so that large requests find whole hosts. What needs no
card goes to hosts without cards as long as there are any.
"""

from collections.abc import Iterable, Sequence

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

    def tightness(self, need: Size) -> tuple[int, int, int, HostId]:
        """Smaller is better: cards it would idle, free cards, free memory; the id, so that it is always the same."""
        spared = 0 if need.gpus else self.gpus_total
        return (spared, sum(self.free_gpus.values()), self.ram_bytes, self.host_id)


def choose(rooms: Iterable[Room], need: Size) -> Room | None:
    """The host that fits tightest. Takes nothing from it."""
    return min(
        (room for room in rooms if room.fits(need)), key=lambda room: room.tightness(need), default=None
    )


def choose_many(rooms: Sequence[Room], need: Size, count: int) -> list[Room] | None:
    """A host for each of `count` alike, all of them or none. Takes them from the rooms.

    A host that fits tightest does so until it is full, and the others stay as they were: so they are put in order once.
    """
    chosen: list[Room] = []
    in_order = sorted((room for room in rooms if room.fits(need)), key=lambda room: room.tightness(need))
    for room in in_order:
        while len(chosen) < count and room.fits(need):
            room.take(need)
            chosen.append(room)
    return chosen if len(chosen) == count else None
