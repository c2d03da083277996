"""Named shapes, derived from the hosts of the installation. Pure.

Processors, memory and disk are proportional to the cards: a shape with half of a host's cards has half of the host.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from teraflock.base.quantities import GIB
from teraflock.base.size import Size
from teraflock.fleet.model import Host
from teraflock.fleet.placement import RAM_BYTES_OF_HOST
from teraflock.fleet.room import Room

CPU_SIZES: Final = (1, 2, 4, 8, 16, 32)
RAM_BYTES_PER_VCPU: Final = GIB
DISK_BYTES: Final = 8 * GIB
DISK_BYTES_PER_GPU: Final = 32 * GIB
CARD_COUNTS: Final = (1, 2, 4, 8, 16)


class NamedShape(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    need: Size
    free: int = 0
    """How many of it could be launched now."""


def named_shapes(hosts: Sequence[Host]) -> list[NamedShape]:
    """All shapes that the hosts provide, those without a card first."""
    vcpus_max = max((host.vcpus for host in hosts), default=0)
    shapes = [
        NamedShape(
            name=f"cpu-{size}",
            need=Size(vcpus=size, ram_bytes=size * RAM_BYTES_PER_VCPU, disk_bytes=DISK_BYTES),
        )
        for size in CPU_SIZES
        if size <= max(vcpus_max, 1)
    ]
    for gpu in sorted({gpu.gpu for host in hosts for gpu in host.gpus}):
        for count in CARD_COUNTS:
            need = card_need(hosts, gpu, count)
            if need:
                shapes.append(NamedShape(name=f"{gpu}x{count}", need=need))
    return shapes


def card_need(hosts: Iterable[Host], gpu: str, count: int) -> Size | None:
    """The size of an instance with `count` cards, or None if no host has that many. The smallest such host decides."""
    shares = []
    for host in hosts:
        cards = sum(1 for each in host.gpus if each.gpu == gpu)
        if cards >= count:
            all_cards = len(host.gpus)
            ram = (host.ram_bytes - RAM_BYTES_OF_HOST) * count // all_cards
            shares.append((max(1, host.vcpus * count // all_cards), max(GIB, ram // GIB * GIB)))
    if not shares:
        return None
    return Size(
        gpu=gpu,
        gpus=count,
        vcpus=min(share[0] for share in shares),
        ram_bytes=min(share[1] for share in shares),
        disk_bytes=count * DISK_BYTES_PER_GPU,
    )


def count_free(rooms: Iterable[Room], need: Size) -> int:
    """How many instances of this size fit into the free room of all hosts."""
    return sum(room.capacity(need) for room in rooms)
