"""The texts of `tera host inspect`. Reads this machine, not a server."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from teraflock.base.quantities import memory_text
from teraflock.host.inspect import inspect

if TYPE_CHECKING:
    from teraflock.host.model import HostCard, Inspection


def inspected() -> "Inspection":
    return inspect()


def gpu_summary() -> tuple[str, int, list[str]]:
    """A short text for the doctor, the number of cards on the bus, and their problems."""
    found = inspected()
    problems = [f"{card.pci_address}: {each}" for card in found.cards for each in card.health.problems]
    if not found.cards:
        return found.note or "no cards", 0, []
    silent = [f"{card.pci_address}: the driver does not answer" for card in found.cards if not card.answers]
    seen = f"{len(found.cards)} cards, driver {found.driver or 'does not answer'}, CUDA {found.cuda or 'unknown'}"
    return seen, len(found.cards), silent + problems


def facts(found: "Inspection") -> Iterator[tuple[str, str]]:
    """Everything except the cards, as (name, text)."""
    processors, memory, space = found.processors, found.memory, found.space
    yield "address", found.address
    yield "kernel", found.kernel + (f", in a container ({found.container})" if found.container else "")
    usable = f", {processors.usable:g} usable" if processors.usable != processors.threads else ""
    size = f"{processors.sockets} × {processors.cores // max(1, processors.sockets)} cores"
    yield "processors", f"{processors.model}: {size}, {processors.threads} threads{usable}"
    yield "memory", f"{memory_text(memory.usable_bytes)}, {memory_text(memory.available_bytes)} available"
    for disk in found.disks:
        kind = "rotating" if disk.rotates else "solid state"
        yield "disk", f"{disk.name}: {memory_text(disk.size_bytes)} {kind} {disk.model}".strip()
    yield "space", f"{memory_text(space.free_bytes)} free of {memory_text(space.total_bytes)} at {space.path}"
    if found.driver:
        yield "driver", f"NVIDIA {found.driver}, CUDA up to {found.cuda or 'unknown'}"
    yield "GPUs", f"{len(found.cards)}" if found.cards else "none: this host offers CPUs only"
    yield "note", found.note


def card_facts(card: "HostCard") -> Iterator[tuple[str, str]]:
    yield "memory", memory_text(card.memory_bytes) if card.memory_bytes else ""
    yield "catalog", (card.gpu if card.known else f"{card.gpu} (not in the catalog)") if card.gpu else ""
    yield "CUDA", f"compute capability {card.compute_capability}" if card.compute_capability else ""
    yield "PCIe", _link(card)
    if card.nvlink and card.nvlink.links:
        version = f", version {card.nvlink.version}" if card.nvlink.version else ""
        yield "NVLink", f"{card.nvlink.links_active} of {card.nvlink.links} links active{version}"
    yield "MIG", "" if card.mig is None else ("on" if card.mig else "off")
    for part in card.slices:
        yield "slice", f"{part.profile}, {memory_text(part.memory_bytes)}, {part.uuid}"
    if card.power_watts is not None:
        yield "power", f"{card.power_watts:.0f} W of {card.power_watts_max or 0:.0f} W"
    yield "temperature", f"{card.temperature_celsius} °C" if card.temperature_celsius is not None else ""
    yield "health", "healthy" if card.health.healthy else "UNHEALTHY"
    for problem in card.health.problems:
        yield "problem", problem


def _link(card: "HostCard") -> str:
    if card.pcie is None or card.pcie.width is None:
        return ""
    most = (
        f" (at most {card.pcie.generation_max} × {card.pcie.width_max})" if card.pcie.generation_max else ""
    )
    return f"generation {card.pcie.generation or '?'} × {card.pcie.width}{most}"
