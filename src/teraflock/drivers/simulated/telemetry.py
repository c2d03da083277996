"""Invented readings of simulated hosts: plausible, and the same for the same host and time."""

import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from teraflock.drivers.simulated.model import Guest
from teraflock.fleet.model import GpuKind, GpuReport, HostReport
from teraflock.fleet.telemetry.model import CardReading, GuestCounters, HostReading

STEP_SECONDS: Final = 10
IDLE_WATTS, BUSY_WATTS = 52, 300
COOL_CELSIUS: Final = 31


def readings(hosts: Sequence[HostReport], guests: Sequence[Guest], now: datetime) -> list[HostReading]:
    busy = {(each.host, gpu.slot) for each in guests for gpu in each.machine.gpus}
    by_host: dict[str, list[Guest]] = {}
    for each in guests:
        by_host.setdefault(each.host, []).append(each)
    return [
        HostReading(
            host=host.name,
            now=now,
            cards=tuple(_card(host.name, gpu, (host.name, gpu.slot) in busy, now) for gpu in host.gpus),
            guests=tuple(_guest(each, now) for each in by_host.get(host.name, ())),
        )
        for host in hosts
    ]


def _card(host: str, gpu: GpuReport, is_busy: bool, now: datetime) -> CardReading:
    seed = f"{host}/{gpu.slot}"
    percent = 60 + _noise(seed, now, 40) if is_busy else 0
    watts = IDLE_WATTS + BUSY_WATTS * percent // 100
    whole = gpu.kind == GpuKind.PHYSICAL
    return CardReading(
        slot=gpu.slot,
        name=gpu.name,
        uuid=f"GPU-simulated-{zlib.crc32(seed.encode()):08x}",
        memory_bytes=gpu.memory_bytes,
        memory_used_bytes=gpu.memory_bytes * percent // 110,
        utilisation_percent=percent if whole else None,
        memory_utilisation_percent=percent // 2 if whole else None,
        power_milliwatts=watts * 1000 + _noise(seed, now, 900) if whole else None,
        energy_millijoules=int(now.timestamp()) % 10**7 * IDLE_WATTS * 1000 if whole else None,
        temperature_celsius=COOL_CELSIUS + percent // 3 + _noise(seed, now, 3) if whole else None,
        sm_clock_mhz=(1380 if is_busy else 135) if whole else None,
        memory_clock_mhz=877 if whole else None,
        throttle_reasons=(0 if is_busy else 1) if whole else None,
        ecc_corrected=0,
        ecc_uncorrected=0,
        xid=0,
    )


def _guest(found: Guest, now: datetime) -> GuestCounters:
    machine, began = found.machine, found.begins_at or datetime.fromtimestamp(0, UTC)
    ran = max(0.0, (now - began).total_seconds())
    return GuestCounters(
        instance_id=machine.id,
        cpu_nanoseconds=int(ran * 10**9 * machine.vcpus / 2),
        ram_used_bytes=machine.ram_bytes // 4 + _noise(machine.id, now, 1000) * machine.ram_bytes // 10_000,
        disk_used_bytes=found.disk.own_bytes,
        received_bytes=int(ran * 2_000),
        sent_bytes=int(ran * 1_000),
    )


def _noise(seed: str, now: datetime, limit: int) -> int:
    """A number below the limit, the same for the same seed within a step."""
    return zlib.crc32(f"{seed}@{int(now.timestamp()) // STEP_SECONDS}".encode()) % limit
