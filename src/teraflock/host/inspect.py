"""Inspects this host, and derives the report for the fleet.

Works without NVIDIA's library, without its driver, in a container, and with a broken card. Reads only from this
machine.
"""

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from teraflock.fleet.model import GpuKind, GpuReport, HostReport
from teraflock.host.bus import logged_faults, nvidia_cards
from teraflock.host.cards import Xids, read_cards, silent_card
from teraflock.host.machine import container_kind, read_disks, read_memory, read_processors, read_space
from teraflock.host.model import HostCard, Inspection
from teraflock.host.nvml import NoNvml, Queries, opened, text

LOOPBACK: Final = "127.0.0.1"
BUSY_PERCENT_MIN: Final = 5  # a display or a probe uses as much; below that, a card is idle
_PROBE_ADDRESS: Final = ("192.0.2.1", 9)  # reserved for documentation: no host has it


def inspect(disk: Path = Path("/")) -> Inspection:
    """Inspect this host. `disk` is the folder for the disks of instances."""
    on_bus = nvidia_cards()
    cards, driver, cuda, note = _cards(on_bus, logged_faults() if on_bus else None)
    return Inspection(
        name=socket.gethostname(),
        address=own_address(),
        kernel=os.uname().release,
        container=container_kind(),
        driver=driver,
        cuda=cuda,
        note=note,
        cards=cards,
        processors=read_processors(),
        memory=read_memory(),
        disks=read_disks(),
        space=read_space(disk),
    )


def host_report(disk: Path = Path("/"), *, name: str = "", address: str = "") -> HostReport:
    """`name` and `address` replace those of the machine."""
    found = report_of(inspect(disk))
    return replace(found, name=name or found.name, address=address or found.address)


def report_of(found: Inspection) -> HostReport:
    """The report for the fleet. A card in MIG mode is reported as its slices, and a card without answer not at all."""
    return HostReport(
        name=found.name,
        address=found.address,
        vcpus=max(1, int(found.processors.usable)),
        ram_bytes=found.memory.usable_bytes,
        disk_bytes=found.space.total_bytes,
        gpus=tuple(gpu for card in found.cards if card.answers for gpu in _offered(card)),
    )


def _offered(card: HostCard) -> tuple[GpuReport, ...]:
    if card.mig:
        return tuple(
            GpuReport(
                slot=f"{card.pci_address}/{part.uuid}",
                kind=GpuKind.MIG,
                gpu=part.gpu,
                name=part.name,
                memory_bytes=part.memory_bytes,
                healthy=card.health.healthy,
            )
            for part in card.slices
        )
    if not card.gpu or card.memory_bytes is None:
        return ()  # nobody could request it
    return (
        GpuReport(
            slot=card.pci_address,
            idle=card.utilisation_percent is not None and card.utilisation_percent < BUSY_PERCENT_MIN,
            gpu=card.gpu,
            name=card.name,
            memory_bytes=card.memory_bytes,
            healthy=card.health.healthy,
        ),
    )


def _cards(on_bus: Sequence[str], xids: Xids | None) -> tuple[tuple[HostCard, ...], str, str, str]:
    """The cards, the versions of driver and CUDA, and a note about all of them."""
    try:
        with opened() as nvml:
            queries = Queries(nvml)
            driver = queries.ask("driver", lambda: text(nvml.nvmlSystemGetDriverVersion())) or ""
            cuda = queries.ask("cuda", lambda: int(nvml.nvmlSystemGetCudaDriverVersion_v2())) or 0
            cards, notes = read_cards(nvml, on_bus, xids)
            return cards, driver, f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else "", "; ".join(notes)
    except NoNvml as reason:
        seen = f"; {len(on_bus)} of its cards are on the bus" if on_bus else ""
        return tuple(silent_card(address, xids) for address in on_bus), "", "", f"{reason}{seen}"


def own_address() -> str:
    """This host's address on the default route. Sends nothing: the kernel only looks up the route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_PROBE_ADDRESS)
        except OSError:
            return LOOPBACK
        return str(probe.getsockname()[0])
