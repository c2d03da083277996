"""Readings in Prometheus' text format, with the names and labels of NVIDIA's dcgm-exporter.

The text is written here, because the names of DCGM's counters do not end in `_total`, as the library wants them. Pure.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from teraflock.fleet.telemetry.model import CardReading, GuestReading, LastOfHost

_MIB: Final = 1 << 20
Value = Callable[[CardReading], float | None]


def _free(card: CardReading) -> float | None:
    if card.memory_bytes is None or card.memory_used_bytes is None:
        return None
    return (card.memory_bytes - card.memory_used_bytes) // _MIB


def _nvlink(card: CardReading) -> float | None:
    if card.nvlink_sent_bytes is None or card.nvlink_received_bytes is None:
        return None
    return (card.nvlink_sent_bytes + card.nvlink_received_bytes) // _MIB


def _divided(value: int | None, by: int) -> float | None:
    return None if value is None else value / by


CARDS: Final[tuple[tuple[str, str, str, Value], ...]] = (
    ("GPU_UTIL", "gauge", "GPU utilization (in %).", lambda card: card.utilisation_percent),
    ("MEM_COPY_UTIL", "gauge", "Memory utilization (in %).", lambda card: card.memory_utilisation_percent),
    ("FB_USED", "gauge", "Framebuffer memory used (in MiB).", lambda card: _mib(card.memory_used_bytes)),
    ("FB_FREE", "gauge", "Framebuffer memory free (in MiB).", _free),
    ("POWER_USAGE", "gauge", "Power draw (in W).", lambda card: _divided(card.power_milliwatts, 1000)),
    (
        "TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Total energy consumption since boot (in mJ).",
        lambda card: card.energy_millijoules,
    ),
    ("GPU_TEMP", "gauge", "GPU temperature (in C).", lambda card: card.temperature_celsius),
    ("SM_CLOCK", "gauge", "SM clock frequency (in MHz).", lambda card: card.sm_clock_mhz),
    ("MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", lambda card: card.memory_clock_mhz),
    (
        "CLOCK_THROTTLE_REASONS",
        "gauge",
        "Reasons for clock throttling (bits).",
        lambda card: card.throttle_reasons,
    ),
    ("ECC_SBE_VOL_TOTAL", "counter", "Single-bit volatile ECC errors.", lambda card: card.ecc_corrected),
    ("ECC_DBE_VOL_TOTAL", "counter", "Double-bit volatile ECC errors.", lambda card: card.ecc_uncorrected),
    ("XID_ERRORS", "gauge", "Value of the last XID error encountered.", lambda card: card.xid),
    ("NVLINK_BANDWIDTH_TOTAL", "counter", "Bytes over all NVLink lanes (in MiB).", _nvlink),
)
GUESTS: Final[tuple[tuple[str, str, Callable[[GuestReading], float | None]], ...]] = (
    ("cpu_cores", "Processors in use", lambda each: _divided(each.cpu_millicores, 1000)),
    ("ram_used_bytes", "Memory in use", lambda each: each.ram_used_bytes),
    ("disk_used_bytes", "Bytes written on its disk", lambda each: each.disk_used_bytes),
    ("received_bytes_per_second", "Bytes received", lambda each: each.received_bytes_per_second),
    ("sent_bytes_per_second", "Bytes sent", lambda each: each.sent_bytes_per_second),
)


def readings_text(found: Sequence[LastOfHost]) -> str:
    cards = [
        (_card_labels(host, n, card), card) for host in found for n, card in enumerate(host.reading.cards)
    ]
    guests = [
        (_labels(instance=each.instance_id, Hostname=host.host), each)
        for host in found
        for each in host.reading.guests
    ]
    lines: list[str] = []
    for name, kind, sentence, value in CARDS:
        lines += _family(
            f"DCGM_FI_DEV_{name}", kind, sentence, ((labels, value(card)) for labels, card in cards)
        )
    for name, sentence, used in GUESTS:
        lines += _family(
            f"tera_instance_{name}",
            "gauge",
            f"{sentence}, by instance",
            ((labels, used(each)) for labels, each in guests),
        )
    lost = [(_labels(Hostname=host.host), float(len(host.reading.lost))) for host in found]
    lines += _family("tera_host_cards_lost", "gauge", "Cards that stopped answering, by host", lost)
    clocks = [(_labels(Hostname=host.host), float(host.reading.clock_off_seconds)) for host in found]
    lines += _family("tera_host_clock_off_seconds", "gauge", "How far a host's clock is ahead", clocks)
    return "".join(f"{line}\n" for line in lines)


def _family(name: str, kind: str, sentence: str, values: Iterable[tuple[str, float | None]]) -> Iterator[str]:
    lines = [f"{name}{{{labels}}} {value:.17g}" for labels, value in values if value is not None]
    if lines:
        yield f"# HELP {name} {sentence}"
        yield f"# TYPE {name} {kind}"
        yield from lines


def _card_labels(host: LastOfHost, number: int, card: CardReading) -> str:
    address, _, part = card.slot.partition("/")
    more = {"GPU_I_ID": part} if part else {}
    return _labels(
        gpu=str(number),
        UUID=card.uuid,
        pci_bus_id=address,
        device=f"nvidia{number}",
        modelName=card.name,
        Hostname=host.host,
        instance=card.instance_id,
        simulated="true" if host.reading.simulated else "",
        **more,
    )


def _labels(**pairs: str) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs.items() if value)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _mib(value: int | None) -> float | None:
    return None if value is None else value // _MIB
