"""Compare the spot price of a machine with its on-demand price, which is in another row of the file.

Importers of layouts with separate rows use this module. It yields spot rows after all others, because the on-demand row
of a machine may come after its spot row.
"""

from collections.abc import Iterable, Iterator

from teraflock.base.money import SECONDS
from teraflock.offer.intake import Rejected, Row
from teraflock.offer.rules import spot_faults


def spot_checked(rows: Iterable[Row | Rejected]) -> Iterator[Row | Rejected]:
    on_demand: dict[tuple[object, ...], int] = {}
    spots: list[Row] = []
    for row in rows:
        if isinstance(row, Row) and row.price_micros and row.mode == "spot":
            spots.append(row)
            continue
        if isinstance(row, Row) and row.price_micros and row.mode == "on-demand":
            key = _machine_key(row)
            on_demand[key] = max(_per_month(row), on_demand.get(key, 0))
        yield row
    for row in spots:
        row.fault, flags = spot_faults(_per_month(row), on_demand.get(_machine_key(row)))
        row.flags += flags
        yield row


def _machine_key(row: Row) -> tuple[object, ...]:
    return (
        row.provider,
        row.region,
        row.zone,
        row.instance_type,
        row.gpu_name,
        row.gpu_count,
        row.currency,
        row.basis,
        row.as_of,
    )


def _per_month(row: Row) -> int:
    return (row.price_micros or 0) * (SECONDS["month"] // SECONDS[row.per])
