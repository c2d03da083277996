"""Small catalogs in each layout, and the result of reading them."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from tests.unit.offer.random_offers import ON, RATES

from teraflock.offer.importers import reader
from teraflock.offer.intake import Rejected, Row, offer_from
from teraflock.offer.model import Offer

Cells = Mapping[str, object]

SKYPILOT = (
    "InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo", "Price", "SpotPrice",
    "Region", "AvailabilityZone",
)  # fmt: skip
GPUHUNT = (
    "instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot", "disk_size",
    "gpu_vendor",
)  # fmt: skip
OWN = (
    "provider", "region", "zone", "instance_type", "gpu", "gpu_count", "gpu_memory_gb", "vcpus", "cpu", "ram_gb",
    "disk_gb", "network_gbps", "mode", "term_months", "price", "currency", "per", "basis", "as_of", "cited", "flags",
    "note",
)  # fmt: skip


class Imported(msgspec.Struct):
    offers: list[Offer]
    rejected: list[Rejected]
    rows: int

    @property
    def one(self) -> Offer:
        (offer,) = self.offers
        assert not self.rejected
        return offer

    def in_mode(self, mode: str) -> list[Offer]:
        return [offer for offer in self.offers if offer.mode == mode]


def skypilot(folder: Path, cloud: str, rows: Iterable[Cells]) -> Path:
    """Write the folder of one cloud."""
    usual = {"vCPUs": 8, "MemoryGiB": 64, "Region": "somewhere"}
    _write(folder / cloud / "vms.csv", SKYPILOT, ({**usual, **row} for row in rows))
    return folder / cloud


def gpu_info(name: str, count: int, memory_mib: int, *, json: bool = False) -> str:
    """Return the text of a `GpuInfo` cell: a Python literal or JSON."""
    text = (
        f"{{'Gpus': [{{'Name': '{name}', 'Manufacturer': 'NVIDIA', 'Count': {count}, "
        f"'MemoryInfo': {{'SizeInMiB': {memory_mib}}}}}], 'TotalGpuMemoryInMiB': {memory_mib}}}"
    )
    return text.replace("'", '"') if json else text


def machine(name: str, count: int, memory_mib: int, price: str = "1.5", **more: object) -> Cells:
    """Return a row in SkyPilot's layout for a machine with GPUs."""
    return {
        "InstanceType": f"{count}x-{name}",
        "AcceleratorName": name,
        "AcceleratorCount": count,
        "GpuInfo": gpu_info(name, count, memory_mib),
        "Price": price,
        **more,
    }


def gpuhunt(file: Path, rows: Iterable[Cells]) -> Path:
    usual = {"instance_name": "m", "location": "x", "cpu": 8, "memory": 64, "gpu_count": 0, "spot": "False"}
    return _write(file, GPUHUNT, ({**usual, **row} for row in rows))


def own(file: Path, rows: Iterable[Cells]) -> Path:
    usual = {
        "provider": "aws", "gpu": "T4", "gpu_count": 1, "mode": "on-demand", "price": "0.5", "currency": "USD",
        "per": "hour",
    }  # fmt: skip
    return _write(file, OWN, ({**usual, **row} for row in rows))


def imported(layout: str, path: Path, as_of: str = "2026-08-22") -> Imported:
    """Read the file as an import would, without a database."""
    rows = 0

    def count() -> None:
        nonlocal rows
        rows += 1

    rows_read = reader(layout)(path, count, lambda file: as_of)
    judged = [offered(row) if isinstance(row, Row) else row for row in rows_read]
    offers = [each for each in judged if isinstance(each, Offer)]
    return Imported(offers, [each for each in judged if isinstance(each, Rejected)], rows)


def offered(row: Row) -> Offer | Rejected:
    return offer_from(row, source="test", rates=RATES, on=ON)


def _write(file: Path, columns: tuple[str, ...], rows: Iterable[Cells]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file
