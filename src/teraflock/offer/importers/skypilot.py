"""Read the SkyPilot catalog: a folder per cloud, each with a `vms.csv` that has on-demand and spot price in one row.

Known faults, corrected here:
- GPU memory is in `GpuInfo`, as JSON, as a Python literal, or missing. Some clouds give the memory of the whole node
  (Vast, PrimeIntellect), some give GiB and call it MiB (Shadeform, RunPod). Of the four interpretations, the reader
  uses the one for which most rows of the file match an existing card.
- Google has separate prices for GPUs and hosts. An offer is their sum.
- Oracle quotes per GPU. If a file has the same price for every number of GPUs, the price is multiplied.
- Four of five rows are machines without a GPU. The reader keeps only their on-demand price: spot prices per zone would
  double the time and size of an import, and nothing uses them.
- RunPod repeats the on-demand price as spot price. Vast's spot prices are all zero.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from teraflock.base.errors import BrokenSource
from teraflock.catalog.names import fits_variant, resolve
from teraflock.catalog.providers import provider_id
from teraflock.offer.dates import DayOf
from teraflock.offer.importers.table import amount, number, read_table
from teraflock.offer.intake import Rejected, Row
from teraflock.offer.model import Mode
from teraflock.offer.rules import spot_faults

FILE_NAME: Final = "vms.csv"
COLUMNS: Final = (
    "InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo", "Price", "SpotPrice",
    "Region",
)  # fmt: skip
PLAIN_SPOT: Final = "spot prices of machines without a GPU are not imported"
GPU_ALONE: Final = "the price is for the GPU only, and its zone has no matching host"
PER_GPU_CLOUDS: Final = frozenset({"oci"})

_MEMORY_MIB: Final = re.compile(r"""["']SizeInMiB["']: ?(\d+)""")
_INFO_NAME: Final = re.compile(r"""["']Name["']: ?["']([^"']+)["']""")
_VAST_NAME: Final = re.compile(r"\d+x-(.+)-\d+-\d+")


class _Machine(msgspec.Struct, gc=False):
    """One parsed row of `vms.csv`."""

    where: str
    instance_type: str
    accelerator: str
    count: float | None
    memory_mib: float | None
    info_name: str
    vcpus: float | None
    ram_gib: float | None
    price: int | None
    spot: int | None
    region: str
    zone: str
    flags: tuple[str, ...] = ()
    fault: str = ""


def read(path: Path, count: Callable[[], None], day_of: DayOf) -> Iterator[Row | Rejected]:
    for cloud, file in files(path):
        day = day_of(file)
        machines: list[_Machine] = []
        for line, cells in read_table(file, COLUMNS, f"{cloud}/{FILE_NAME}"):
            count()
            machine = _machine_from(cells, f"{cloud}/{FILE_NAME}, line {line}")
            if isinstance(machine, Rejected):
                yield machine
            else:
                machines.append(machine)
        _read_memory(machines, cloud)
        if cloud == "gcp":
            machines = list(_with_hosts(machines))
        per_gpu = _priced_per_gpu(machines) if cloud in PER_GPU_CLOUDS else frozenset()
        provider = provider_id(cloud)
        for machine in machines:
            yield from _rows_of(machine, provider, per_gpu, day)


def files(path: Path) -> list[tuple[str, Path]]:
    """List (cloud, file) of a catalog folder, of the folder of one cloud, or of one `vms.csv`."""
    if path.is_file():
        return [(path.parent.name, path)]
    if (path / FILE_NAME).is_file():
        return [(path.name, path / FILE_NAME)]
    found = [(file.parent.name, file) for file in sorted(path.glob(f"*/{FILE_NAME}"))]
    if not found:
        raise BrokenSource(
            f"`{path}` is not a SkyPilot catalog" if path.exists() else f"`{path}` does not exist",
            hint=f"Give the folder that contains one folder per cloud, each with a `{FILE_NAME}`",
        )
    return found


def _machine_from(cells: dict[str, str], where: str) -> _Machine | Rejected:
    info = cells["GpuInfo"]
    try:
        count, price, spot = (
            number(cells["AcceleratorCount"]),
            amount(cells["Price"]),
            amount(cells["SpotPrice"]),
        )
        vcpus, ram_gib = number(cells["vCPUs"]), number(cells["MemoryGiB"])
    except ValueError:
        return Rejected(where, "a price or another figure is not a number")
    if cells["AcceleratorName"] and not count:
        return Rejected(where, "a GPU has no count")
    memory = _MEMORY_MIB.search(info) if info else None
    name = _INFO_NAME.search(info) if info else None
    return _Machine(
        where=where,
        instance_type=cells["InstanceType"],
        accelerator=cells["AcceleratorName"],
        count=count,
        memory_mib=(float(memory[1]) or None) if memory else None,
        info_name=name[1] if name else "",
        vcpus=vcpus,
        ram_gib=ram_gib,
        price=price,
        spot=spot,
        region=cells["Region"].removeprefix(", "),
        zone=cells.get("AvailabilityZone", ""),
    )


def _rows_of(machine: _Machine, provider: str, per_gpu: frozenset[str], day: str) -> Iterator[Row | Rejected]:
    """Yield the on-demand and spot offers of a machine, or one offer without a price if it has neither."""
    name = _card_name(machine.accelerator, machine.info_name, machine.instance_type, machine.memory_mib)

    def row(mode: Mode, price: int | None, flags: tuple[str, ...], fault: str) -> Row:
        return Row(
            where=machine.where,
            provider=provider,
            region=machine.region,
            zone=machine.zone,
            instance_type=machine.instance_type,
            gpu_name=name,
            gpu_count=machine.count,
            gpu_memory_mib=machine.memory_mib,
            vcpus=machine.vcpus,
            ram_gib=machine.ram_gib,
            mode=mode,
            price_micros=price,
            basis="gpu" if machine.accelerator in per_gpu else "instance",
            flags=flags,
            fault=fault,
            as_of=day,
        )

    if machine.price is not None or machine.spot is None:
        yield row("on-demand", machine.price, machine.flags, machine.fault)
    if machine.spot is None:
        return
    if not machine.accelerator and machine.price is not None:
        yield Rejected(machine.where, PLAIN_SPOT)
    else:
        fault, flags = spot_faults(machine.spot, machine.price)
        yield row("spot", machine.spot, machine.flags + flags, machine.fault or fault)


# --- cards and memory ----------------------------------------------------------------------------------------------


def _read_memory(machines: Iterable[_Machine], cloud: str) -> None:
    """Convert the memory figures to MiB of one GPU, using the interpretation that fits most rows."""
    with_memory = [
        machine for machine in machines if machine.memory_mib and machine.count and machine.count >= 1
    ]
    votes: Counter[tuple[bool, bool]] = Counter()
    for (name, count, mib), rows in Counter(
        (m.accelerator, m.count, m.memory_mib) for m in with_memory
    ).items():
        for of_node in (False, True):
            for in_gib in (False, True):
                if fits_variant(
                    name, (mib or 0) * (1024 if in_gib else 1) / ((count or 1) if of_node else 1)
                ):
                    votes[of_node, in_gib] += rows
    # On a tie, use the simplest interpretation: if every machine has one GPU, node and GPU memory are the same.
    of_node, in_gib = max(
        votes, key=lambda reading: (votes[reading], not reading[0], not reading[1]), default=(False, False)
    )
    for machine in with_memory:
        if in_gib or (of_node and machine.count != 1):
            machine.memory_mib = (
                (machine.memory_mib or 0) * (1024 if in_gib else 1) / ((machine.count or 1) if of_node else 1)
            )
            machine.flags += ("corrected:memory",)
    for machine in machines:
        if machine.count and machine.count < 1:
            machine.memory_mib = None  # for a slice, the memory of the card times the share is more reliable


@cache
def _card_name(accelerator: str, info_name: str, instance_type: str, memory_mib: float | None) -> str:
    """Return the most specific name of the card: `A100 PCIe` or `A100_SXM4` rather than `A100`."""
    plain = resolve(accelerator, memory_mib) if accelerator else None
    if plain is None or plain.card is None or not plain.inferred:
        return accelerator
    vast = _VAST_NAME.fullmatch(instance_type)
    for name in (vast[1] if vast else "", info_name):
        better = resolve(name, memory_mib) if name else None
        if better and better.card and better.card.family == plain.card.family and not better.inferred:
            return name
    return accelerator


# --- prices that do not cover the machine --------------------------------------------------------------------------


def _priced_per_gpu(machines: Iterable[_Machine]) -> frozenset[str]:
    """Return the cards that have the same price for different numbers of GPUs in one region."""
    counts: dict[tuple[str, str, int], set[float]] = {}
    for machine in machines:
        if machine.accelerator and machine.price and machine.count:
            counts.setdefault(
                (machine.accelerator, machine.zone or machine.region, machine.price), set()
            ).add(machine.count)
    return frozenset(accelerator for (accelerator, _, _), seen in counts.items() if len(seen) > 1)


GCP_HOSTS: Final[dict[str, dict[int, tuple[str, ...]]]] = {
    "A100": {**{n: (f"a2-highgpu-{n}g",) for n in (1, 2, 4, 8)}, 16: ("a2-megagpu-16g",)},
    "A100-80GB": {n: (f"a2-ultragpu-{n}g",) for n in (1, 2, 4, 8)},
    "H100": {n: (f"a3-highgpu-{n}g",) for n in (1, 2, 4, 8)},
    "H100-MEGA": {8: ("a3-megagpu-8g",)},
    "H200": {8: ("a3-ultragpu-8g",)},
    "B200": {8: ("a4-highgpu-8g",)},
    "L4": {
        1: ("g2-standard-4", "g2-standard-8", "g2-standard-12", "g2-standard-16", "g2-standard-32"),
        2: ("g2-standard-24",), 4: ("g2-standard-48",), 8: ("g2-standard-96",),
    },
    "RTXPRO6000": {1: ("g4-standard-48",), 2: ("g4-standard-96",), 4: ("g4-standard-192",), 8: ("g4-standard-384",)},
}  # fmt: skip
"""Google's machine types that include GPUs."""
GCP_ATTACHED: Final = frozenset({"T4", "V100", "P100", "P4", "K80"})
GCP_ATTACHED_VCPUS: Final = 8
"""GPUs that can be attached to any host get an `n1-standard` with 8 vCPUs per GPU, which is enough for one card."""
GCP_GPU_SERIES: Final = ("a2-", "a3-", "a4-", "g2-", "g4-")


def _with_hosts(machines: list[_Machine]) -> Iterator[_Machine]:
    """Join each of Google's GPU rows with its host in the same zone. Drop hosts that exist only for GPUs."""
    hosts = {(m.instance_type, m.zone): m for m in machines if not m.accelerator}
    for machine in machines:
        if not machine.accelerator:
            if not machine.instance_type.startswith(GCP_GPU_SERIES):
                yield machine
            continue
        names = _gcp_hosts(machine.accelerator, int(machine.count or 0))
        joined = [_joined(machine, host) for name in names if (host := hosts.get((name, machine.zone)))]
        if joined:
            yield from joined
        elif machine.accelerator.startswith("tpu"):
            yield msgspec.structs.replace(machine, instance_type=machine.instance_type or machine.accelerator)
        else:
            yield msgspec.structs.replace(machine, flags=(*machine.flags, "gpu-only"), fault=GPU_ALONE)


def _gcp_hosts(accelerator: str, count: int) -> tuple[str, ...]:
    if accelerator in GCP_ATTACHED:
        return (f"n1-standard-{GCP_ATTACHED_VCPUS * count}",)
    return GCP_HOSTS.get(accelerator, {}).get(count, ())


def _joined(gpu: _Machine, host: _Machine) -> _Machine:
    return msgspec.structs.replace(
        gpu,
        instance_type=host.instance_type,
        vcpus=host.vcpus,
        ram_gib=host.ram_gib,
        price=None if gpu.price is None or host.price is None else gpu.price + host.price,
        spot=None if gpu.spot is None or host.spot is None else gpu.spot + host.spot,
        flags=(*gpu.flags, "host-added"),
    )
