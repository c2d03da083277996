"""The hosts of a simulated fleet, from text such as `4x8xV100,2x0` (four hosts with eight cards each, two
without).

Cards have their usual names. With a slice profile after a colon, such as `1x7xA100-80:1g.10gb`, the number
counts slices. A host's processors, memory and disk are in proportion to its cards, as in typical servers.
"""

import hashlib
import re
from functools import cache
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.base.quantities import GIB
from teraflock.catalog.cards import slices_of
from teraflock.catalog.model import Card, CardSlice
from teraflock.catalog.names import find_cards
from teraflock.fleet.model import GpuKind, GpuReport, HostReport
from teraflock.fleet.slicing.rules import address_of
from teraflock.instance.engine_errors import EngineMissing

HOSTS_MAX: Final = 100_000
"""Each has its own address in the range 198.18.0.0/15, which is reserved for benchmarks and not routed."""
GPUS_MAX: Final = 64
_GROUP: Final = re.compile(r"(\d{1,6})x(\d{1,2})(?:x([^,]+))?")

NEIGHBOURS: Final = 4
"""How many cards are connected directly, as on common boards with eight cards."""
VCPUS_MIN, VCPUS_PER_GPU = 32, 12
RAM_GIB_MIN, RAM_GIB_PER_GPU = 128, 96
DISK_GIB_MIN, DISK_GIB_PER_GPU = 2048, 1024


@cache
def fleet(words: str) -> tuple[HostReport, ...]:
    hosts: list[HostReport] = []
    for group in words.split(","):
        match = _GROUP.fullmatch(group.strip())
        if match is None or (int(match[2]) > 0) != bool(match[3]) or int(match[2]) > GPUS_MAX:
            raise BadInput(
                f"Invalid group of simulated hosts: `{group.strip()}`",
                hint="Write hosts × cards × model, such as `4x8xV100`; `2x0` means two hosts without cards",
            )
        first = len(hosts) + 1
        hosts += (_host(first + place, int(match[2]), match[3] or "") for place in range(int(match[1])))
        if len(hosts) > HOSTS_MAX:
            raise BadInput(f"Too many simulated hosts: the maximum is {HOSTS_MAX:,}")
    return tuple(hosts)


def _host(number: int, gpus: int, words: str) -> HostReport:
    name = f"simulated-{number:04d}"
    return HostReport(
        name=name,
        address=f"198.{18 + (number >> 16)}.{number >> 8 & 255}.{number & 255}",
        vcpus=max(VCPUS_MIN, VCPUS_PER_GPU * gpus),
        ram_bytes=max(RAM_GIB_MIN, RAM_GIB_PER_GPU * gpus) * GIB,
        disk_bytes=max(DISK_GIB_MIN, DISK_GIB_PER_GPU * gpus) * GIB,
        gpus=tuple(_gpu(name, place, words) for place in range(gpus)),
    )


def _gpu(host: str, place: int, words: str) -> GpuReport:
    card, part = _kind(words)
    if part is None:
        return GpuReport(
            slot=f"0000:{place + 1:02x}:00.0",
            gpu=card.id,
            name=f"Simulated {card.name}",
            memory_bytes=card.usable_memory_bytes or card.memory_bytes,
            near=f"nvlink-{place // NEIGHBOURS}",
        )
    digest = hashlib.sha256(f"{host}/{place}".encode()).hexdigest()
    uuid = "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
    return GpuReport(
        slot=f"0000:{place + 1:02x}:00.0/MIG-{uuid}",
        kind=GpuKind.MIG,
        gpu=f"{card.id}:{part.profile}",
        name=f"Simulated {card.name} MIG {part.profile}",
        memory_bytes=part.memory_bytes,
    )


def divided(report: HostReport, address: str, profiles: tuple[str, ...]) -> HostReport:
    """The host with one card divided into these slices, or whole."""
    mine = [gpu for gpu in report.gpus if address_of(gpu.slot) == address]
    if not mine:
        raise EngineMissing("The simulated host has no such card")
    model = mine[0].gpu.partition(":")[0]
    parts = tuple(
        _gpu(f"{report.name}/{address}/{number}", 0, f"{model}:{profile}" if profile else model)
        for number, profile in enumerate(profiles or ("",))
    )
    new = tuple(replace(part, slot=address + part.slot[len("0000:01:00.0") :]) for part in parts)
    others = [gpu for gpu in report.gpus if gpu not in mine]
    return replace(report, gpus=tuple(sorted((*others, *new), key=lambda gpu: gpu.slot)))


@cache
def _kind(words: str) -> tuple[Card, CardSlice | None]:
    name, _, profile = words.partition(":")
    card = find_cards(name)[0]
    if not profile:
        return card, None
    for each in slices_of(card):
        if each.profile == profile:
            return card, each
    raise BadInput(f"A {card.name} has no slice profile `{profile}`")
