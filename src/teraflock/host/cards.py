"""Every NVIDIA card of this host, read from NVML, and the cards that are on the bus but unknown to the driver."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from teraflock.catalog.names import resolve
from teraflock.host.health import LOST, health_of
from teraflock.host.model import Health, HostCard, HostSlice, NvLink, Pcie
from teraflock.host.nvml import Queries, text

_MIB: Final = 1 << 20
_PART: Final = " MIG "


Xids = Mapping[str, tuple[int, ...]]


def read_cards(
    nvml: Any, on_bus: Sequence[str], xids: Xids | None
) -> tuple[tuple[HostCard, ...], tuple[str, ...]]:
    """All cards ordered by PCI address, and notes about those without one.

    A broken card does not hide the others.
    """
    cards: list[HostCard] = []
    notes: list[str] = []
    queries = Queries(nvml)
    count = queries.ask("count", lambda: int(nvml.nvmlDeviceGetCount())) or 0
    notes += [f"The driver cannot count its cards: {reason}" for reason in queries.unread.values()]
    for index in range(count):
        found = _card_at(nvml, index, xids)
        if isinstance(found, HostCard):
            cards.append(found)
        else:
            notes.append(f"Card {index} of the driver does not answer: {found}")
    answering = {card.pci_address for card in cards}
    cards += [silent_card(address, xids) for address in on_bus if address not in answering]
    return tuple(sorted(cards, key=lambda card: card.pci_address)), tuple(notes)


def silent_card(address: str, xids: Xids | None) -> HostCard:
    """A card that is on the bus but does not answer the driver."""
    health = Health(healthy=False, problems=(LOST,), xids=None if xids is None else xids.get(address, ()))
    return HostCard(pci_address=address, answers=False, health=health)


def _card_at(nvml: Any, index: int, xids: Xids | None) -> HostCard | str:
    """A card, or the reason why even its address cannot be read."""
    queries = Queries(nvml)
    ask = queries.ask
    handle = ask("handle", lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    bus_id = ask("pci_address", lambda: text(nvml.nvmlDeviceGetPciInfo(handle).busId)) if handle else None
    if bus_id is None:
        return ", ".join(queries.unread.values())  # the bus still lists it if it exists
    address = address_of(bus_id)
    name = ask("name", lambda: text(nvml.nvmlDeviceGetName(handle))) or ""
    memory = ask("memory", lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    gpu, known = catalog_id(name, memory.total if memory else None)
    capability = ask("compute_capability", lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    mig = ask("mig", lambda: nvml.nvmlDeviceGetMigMode(handle))
    ecc = ask("ecc", lambda: nvml.nvmlDeviceGetEccMode(handle))
    power = ask("power", lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    power_max = ask("power_max", lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    busy = ask("utilisation", lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    return HostCard(
        pci_address=address,
        answers=True,
        name=name,
        gpu=gpu,
        known=known,
        uuid=ask("uuid", lambda: text(nvml.nvmlDeviceGetUUID(handle))) or "",
        memory_bytes=memory.total if memory else None,
        memory_used_bytes=memory.used if memory else None,
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        mig=bool(mig[0]) if mig else None,
        mig_pending=bool(mig[1]) if mig else None,
        slices=_slices(nvml, queries, handle, gpu) if mig and mig[0] else (),
        pcie=_pcie(nvml, queries, handle),
        nvlink=_nvlink(nvml, queries, handle),
        ecc=bool(ecc[0]) if ecc else None,
        temperature_celsius=temperature(nvml, queries, handle),
        power_watts=None if power is None else power / 1000,
        power_watts_max=None if power_max is None else power_max / 1000,
        utilisation_percent=busy.gpu if busy else None,
        memory_utilisation_percent=busy.memory if busy else None,
        health=health_of(nvml, queries, handle, None if xids is None else xids.get(address, ())),
        unread=queries.unread,
    )


def address_of(bus_id: str) -> str:
    """Convert NVML's `00000000:3B:00.0` to the form of the kernel and LXD: `0000:3b:00.0`."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def catalog_id(name: str, memory_bytes: int | None) -> tuple[str, bool]:
    """The catalog's id of a card, or an id made from its name; and whether it is in the catalog."""
    found = resolve(name, memory_bytes / _MIB if memory_bytes else None) if name else None
    if found is not None and found.card is not None:
        return found.card.id, True
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"), False


def read_slices(nvml: Any, handle: Any) -> tuple[HostSlice, ...]:
    """The slices of a card in MIG mode."""
    return _slices(nvml, Queries(nvml), handle, "")


def _slices(nvml: Any, queries: Queries, handle: Any, gpu: str) -> tuple[HostSlice, ...]:
    count = queries.ask("slices", lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(handle)) or 0
    found = (_slice_at(nvml, queries, handle, index, gpu) for index in range(count))
    return tuple(each for each in found if each is not None)


def _slice_at(nvml: Any, queries: Queries, handle: Any, index: int, gpu: str) -> HostSlice | None:
    def part() -> Any:
        try:
            return nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except nvml.NVMLError_NotFound:
            return None  # no slice at this index

    ask, what = queries.ask, f"slice {index}"
    mine = ask(what, part)
    if mine is None:
        return None
    uuid = ask(f"{what} uuid", lambda: text(nvml.nvmlDeviceGetUUID(mine)))
    name = ask(f"{what} name", lambda: text(nvml.nvmlDeviceGetName(mine))) or ""
    memory = ask(f"{what} memory", lambda: nvml.nvmlDeviceGetMemoryInfo(mine))
    if uuid is None or memory is None:
        return None  # cannot be assigned; `unread` has the reason
    profile = name.partition(_PART)[2] or "unknown"
    return HostSlice(
        uuid=uuid,
        name=name,
        profile=profile,
        gpu=f"{gpu}:{profile}",
        memory_bytes=memory.total,
        memory_used_bytes=memory.used,
    )


def _pcie(nvml: Any, queries: Queries, handle: Any) -> Pcie | None:
    ask = queries.ask
    link = Pcie(
        generation=ask("pcie", lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
        generation_max=ask("pcie", lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)),
        width=ask("pcie", lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle)),
        width_max=ask("pcie", lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)),
    )
    return None if link == Pcie(generation=None, generation_max=None, width=None, width_max=None) else link


def _nvlink(nvml: Any, queries: Queries, handle: Any) -> NvLink | None:
    def states() -> list[bool]:
        """The state of every link of the card. NVML refuses indexes beyond the last link."""
        found: list[bool] = []
        for link in range(nvml.NVML_NVLINK_MAX_LINKS):
            try:
                found.append(bool(nvml.nvmlDeviceGetNvLinkState(handle, link)))
            except (nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
                break
        return found

    links = queries.ask("nvlink", states)
    if not links:
        return None
    first = links.index(True) if any(links) else 0
    version = queries.ask("nvlink_version", lambda: nvml.nvmlDeviceGetNvLinkVersion(handle, first))
    return NvLink(links=len(links), links_active=sum(links), version=version)


def temperature(nvml: Any, queries: Queries, handle: Any) -> int | None:
    return queries.ask(
        "temperature",
        lambda: int(nvml.nvmlDeviceGetTemperatureV(handle, nvml.NVML_TEMPERATURE_GPU)),
        lambda: int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
    )
