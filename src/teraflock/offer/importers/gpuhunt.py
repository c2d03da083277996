"""Read gpuhunt's catalog: one CSV file per provider, with a row per instance type, place and purchase mode.

Prices are US dollars per hour for the whole instance. Memory is in GB. `spot` is `True` or `False`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from teraflock.catalog.providers import provider_id
from teraflock.offer.dates import DayOf
from teraflock.offer.importers.table import amount, csv_files, number, read_table
from teraflock.offer.intake import Rejected, Row
from teraflock.offer.pairing import spot_checked

COLUMNS: Final = (
    "instance_name",
    "location",
    "price",
    "cpu",
    "memory",
    "gpu_count",
    "gpu_name",
    "gpu_memory",
    "spot",
)


def read(path: Path, count: Callable[[], None], day_of: DayOf) -> Iterator[Row | Rejected]:
    for file in csv_files(path):
        yield from spot_checked(_rows_of(file, count, day_of(file)))


def _rows_of(file: Path, count: Callable[[], None], day: str) -> Iterator[Row | Rejected]:
    provider = provider_id(file.stem)
    for line, cells in read_table(file, COLUMNS):
        count()
        yield _row_from(cells, provider, f"{file.name}, line {line}", day)


def _row_from(cells: dict[str, str], provider: str, where: str, day: str) -> Row | Rejected:
    if cells["spot"] not in ("True", "False"):
        return Rejected(where, "`spot` is neither `True` nor `False`")
    vendor, name = cells.get("gpu_vendor", ""), cells["gpu_name"]
    try:
        count, memory_gb = number(cells["gpu_count"]), number(cells["gpu_memory"])
        if name and not count:
            return Rejected(where, "a GPU has no count")
        return Row(
            where=where,
            provider=provider,
            region=cells["location"],
            instance_type=cells["instance_name"],
            gpu_name=f"tpu-{name}" if vendor == "google" and not name.startswith("tpu") else name,
            gpu_count=count,
            gpu_memory_mib=memory_gb * 1024 if memory_gb else None,
            vcpus=number(cells["cpu"]),
            ram_gib=number(cells["memory"]),
            disk_gb=number(cells.get("disk_size", "")),
            mode="spot" if cells["spot"] == "True" else "on-demand",
            price_micros=amount(cells["price"]),
            as_of=day,
        )
    except ValueError:
        return Rejected(where, "a price or another figure is not a number")
