"""What the cards of this host do now, read from NVML. Reads less than an inspection, so it can run often."""

from typing import Any, Final

from teraflock.fleet.telemetry.model import CardReading
from teraflock.host.bus import logged_faults, nvidia_cards
from teraflock.host.cards import Xids, address_of, read_slices, temperature
from teraflock.host.nvml import NoNvml, Queries, opened, text

ALL_LINKS: Final = 2**32 - 1
_KIB: Final = 1024


def card_readings() -> tuple[CardReading, ...]:
    """All cards that answer, and their slices. Empty without cards or without their driver."""
    if not nvidia_cards():
        return ()
    try:
        with opened() as nvml:
            return readings_of(nvml, logged_faults())
    except NoNvml:
        return ()


def readings_of(nvml: Any, xids: Xids | None) -> tuple[CardReading, ...]:
    count = Queries(nvml).ask("count", lambda: int(nvml.nvmlDeviceGetCount())) or 0
    return tuple(reading for index in range(count) for reading in _readings_at(nvml, index, xids))


def _readings_at(nvml: Any, index: int, xids: Xids | None) -> tuple[CardReading, ...]:
    queries = Queries(nvml)
    handle = queries.ask("handle", lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    bus_id = queries.ask("address", lambda: text(nvml.nvmlDeviceGetPciInfo(handle).busId)) if handle else None
    if bus_id is None:
        return ()  # the card is lost
    address = address_of(bus_id)
    card = _card(nvml, queries, handle, address, xids)
    mig = queries.ask("mig", lambda: nvml.nvmlDeviceGetMigMode(handle))
    return (card, *_slices(nvml, handle, address)) if mig and mig[0] else (card,)


def _card(nvml: Any, queries: Queries, handle: Any, address: str, xids: Xids | None) -> CardReading:
    ask = queries.ask
    memory = ask("memory", lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    busy = ask("utilisation", lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    sent, received = _nvlink_bytes(nvml, queries, handle)
    return CardReading(
        slot=address,
        name=ask("name", lambda: text(nvml.nvmlDeviceGetName(handle))) or "",
        uuid=ask("uuid", lambda: text(nvml.nvmlDeviceGetUUID(handle))) or "",
        memory_bytes=memory.total if memory else None,
        memory_used_bytes=memory.used if memory else None,
        utilisation_percent=busy.gpu if busy else None,
        memory_utilisation_percent=busy.memory if busy else None,
        power_milliwatts=ask("power", lambda: nvml.nvmlDeviceGetPowerUsage(handle)),
        energy_millijoules=ask("energy", lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle)),
        temperature_celsius=temperature(nvml, queries, handle),
        sm_clock_mhz=ask("clock", lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        memory_clock_mhz=ask("clock", lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        throttle_reasons=ask(
            "throttle",
            lambda: int(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)),
            lambda: int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
        ),
        ecc_corrected=_ecc(nvml, queries, handle, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        ecc_uncorrected=_ecc(nvml, queries, handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        xid=None if xids is None else next(iter(xids.get(address, ())), 0),
        nvlink_links=_nvlink_links(nvml, queries, handle),
        nvlink_sent_bytes=sent,
        nvlink_received_bytes=received,
        healthy=not queries.lost,
    )


def _slices(nvml: Any, handle: Any, address: str) -> tuple[CardReading, ...]:
    """The slices of a card. NVML reads only the memory of a slice: the rest is that of the whole card."""
    found = read_slices(nvml, handle)
    return tuple(
        CardReading(
            slot=f"{address}/{part.uuid}",
            name=part.name,
            uuid=part.uuid,
            memory_bytes=part.memory_bytes,
            memory_used_bytes=part.memory_used_bytes,
        )
        for part in found
    )


def _ecc(nvml: Any, queries: Queries, handle: Any, kind: int) -> int | None:
    return queries.ask(
        "ecc", lambda: int(nvml.nvmlDeviceGetTotalEccErrors(handle, kind, nvml.NVML_VOLATILE_ECC))
    )


def _nvlink_links(nvml: Any, queries: Queries, handle: Any) -> int | None:
    def active() -> int:
        """NVML refuses indexes beyond the last link."""
        count = 0
        for link in range(nvml.NVML_NVLINK_MAX_LINKS):
            try:
                count += bool(nvml.nvmlDeviceGetNvLinkState(handle, link))
            except (nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
                break
        return count

    return queries.ask("nvlink", active)


def _nvlink_bytes(nvml: Any, queries: Queries, handle: Any) -> tuple[int | None, int | None]:
    def fields() -> tuple[int | None, int | None]:
        wanted = (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX)
        found = nvml.nvmlDeviceGetFieldValues(handle, [(field, ALL_LINKS) for field in wanted])
        sent, received = (
            int(each.value.ullVal) * _KIB if each.nvmlReturn == nvml.NVML_SUCCESS else None for each in found
        )
        return sent, received

    return queries.ask("nvlink_bytes", fields) or (None, None)
