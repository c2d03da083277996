"""Read Teraflock's own CSV layout, with a column for every field of an offer. See `docs/offers-csv.md`.

A `gpu`, `gpu_count` or `mode` cell with several values, separated by `|`, gives one offer for each value.
"""

from collections.abc import Callable, Iterator
from datetime import date
from itertools import product
from math import prod
from pathlib import Path
from typing import Final, get_args

from teraflock.base.money import Period
from teraflock.catalog.providers import provider_id
from teraflock.offer.dates import DayOf
from teraflock.offer.importers.table import amount, csv_files, number, read_table
from teraflock.offer.intake import Rejected, Row
from teraflock.offer.model import FLAGS, MODES
from teraflock.offer.pairing import spot_checked
from teraflock.offer.rules import first_day

OFFERS_PER_ROW_MAX: Final = 100
"""A row with long lists must not become millions of offers. Real rows have up to ten."""
NEEDED: Final = ("provider", "gpu", "gpu_count", "mode", "price", "currency", "per")
OPTIONAL: Final = (
    "region", "zone", "instance_type", "gpu_memory_gb", "vcpus", "cpu", "ram_gb", "disk_gb", "network_gbps",
    "term_months", "basis", "as_of", "cited", "flags", "note",
)  # fmt: skip


def read(path: Path, count: Callable[[], None], day_of: DayOf) -> Iterator[Row | Rejected]:
    for file in csv_files(path):
        yield from spot_checked(_rows_of(file, count, day_of(file)))


def _rows_of(file: Path, count: Callable[[], None], day: str) -> Iterator[Row | Rejected]:
    for line, cells in read_table(file, NEEDED):
        count()
        where = f"{file.name}, line {line}"
        several = [cells[name].split("|") for name in ("gpu", "gpu_count", "mode")]
        if prod(map(len, several)) > OFFERS_PER_ROW_MAX:
            yield Rejected(where, f"gives more than {OFFERS_PER_ROW_MAX} offers")
            continue
        for gpu, gpus, mode in product(*several):
            yield _row_from({**cells, "gpu_count": gpus}, gpu.strip(), mode.strip(), where, day)


def _row_from(cells: dict[str, str], gpu: str, mode: str, where: str, day: str) -> Row | Rejected:
    def cell(name: str) -> str:
        return cells.get(name, "").strip()

    flags = tuple(cell("flags").split())
    if not cell("provider"):
        return Rejected(where, "the provider is missing")
    if mode and mode not in MODES:
        return Rejected(where, f"unknown purchase mode `{mode}`")
    if cell("per") not in get_args(Period):
        return Rejected(where, f"unknown period `{cell('per')}`")
    if cell("basis") not in ("", "instance", "gpu"):
        return Rejected(where, f"unknown price basis `{cell('basis')}`")
    if unknown := [flag for flag in flags if flag not in FLAGS]:
        return Rejected(where, f"unknown flag `{unknown[0]}`")
    if not _is_day(cell("as_of")):
        return Rejected(where, f"`{cell('as_of')}` is not a date")
    try:
        memory_gb, term = number(cell("gpu_memory_gb")), number(cell("term_months"))
        return Row(
            where=where,
            provider=provider_id(cell("provider")),
            region=cell("region"),
            zone=cell("zone"),
            instance_type=cell("instance_type"),
            gpu_name=gpu,
            gpu_count=number(cell("gpu_count")),
            gpu_memory_mib=memory_gb * 1024 if memory_gb else None,
            vcpus=number(cell("vcpus")),
            cpu=cell("cpu"),
            ram_gib=number(cell("ram_gb")),
            disk_gb=number(cell("disk_gb")),
            network_gbps=number(cell("network_gbps")),
            mode=mode or None,
            term_months=None if term is None else int(term),
            price_micros=amount(cell("price")),
            currency=cell("currency"),
            per=cell("per"),  # type: ignore[arg-type]  # a Period, as checked
            basis="gpu" if cell("basis") == "gpu" else "instance",
            as_of=cell("as_of") or day,
            cited=cell("cited"),
            flags=flags,
            note=cell("note"),
        )
    except ValueError:
        return Rejected(where, "a price or another figure is not a number")


def _is_day(text: str) -> bool:
    """Return whether the text is empty, a year, a month or a day."""
    if len(text) not in (0, 4, 7, 10):
        return False
    try:
        return text == "" or date.fromisoformat(first_day(text)).isoformat() == first_day(text)
    except ValueError:
        return False
