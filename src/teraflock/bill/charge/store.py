"""All SQL of charges. They are added and never changed."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

import msgspec

from teraflock.base.clock import DAY_US, at_microseconds
from teraflock.bill.charge.model import Amounts, Charge, ChargeSlice, Subject
from teraflock.meter.model import Holding
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table, in_list, insert_into, number
from teraflock.tenant.model import ProjectId

_KEY: Final = ("subject", "generation", "sequence", "segment", "kind", "reverses", "project_id", "month")
_SLICE: Final = (
    "from_us", "until_us", "currency", "micros", "gpu_micros", "vcpu_micros", "ram_micros", "disk_micros",
    "snapshot_micros", "egress_micros", "minimum_micros", "fee_micros", "list_micros", "egress_bytes",
    "version", "discount_bp", "purchase_id",
)  # fmt: skip
_HELD: Final = Table("charge", Holding, embed={"size": ""})
COLUMNS: Final = ("number", *_KEY, *_SLICE, *_HELD.columns, "booked_at_us")
_INSERT: Final = insert_into("charge", *COLUMNS)
_SELECT: Final = f"SELECT {', '.join(COLUMNS)} FROM charge"
_SUMMED: Final = ("project_id", "month", "currency", "gpu", "member", "labels", "kind")
_ADD_SUM: Final = (
    f"{insert_into('charge_sum', *_SUMMED, 'lines', 'micros', 'list_micros')}"
    f" ON CONFLICT ({', '.join(_SUMMED)}) DO UPDATE SET"
    " lines = charge_sum.lines + excluded.lines, micros = charge_sum.micros + excluded.micros,"
    " list_micros = charge_sum.list_micros + excluded.list_micros"
)
_alike: Final = itemgetter(*map(COLUMNS.index, _SUMMED))
_amounts: Final = itemgetter(COLUMNS.index("micros"), COLUMNS.index("list_micros"))


class Booked(msgspec.Struct, frozen=True, kw_only=True):
    """A charge with its number: a line of the bill."""

    number: int
    at_us: int
    month: str
    charge: Charge


class ChargeSum(msgspec.Struct, frozen=True, kw_only=True):
    """The charges of a month with the same GPU model, member, labels and kind."""

    currency: str
    gpu: str
    member: str
    labels: str
    kind: str
    lines: int
    micros: int
    list_micros: int


def add(tx: Transaction, charges: Iterable[Charge], *, first_number: int, now_us: int) -> None:
    """Add charges, numbered from `first_number` on, and add them to the sums of their months."""
    totals: dict[tuple[str, ...], list[int]] = {}
    rows = (_row(number, each, now_us) for number, each in enumerate(charges, start=first_number))
    tx.run_many(_INSERT, _summed(rows, totals))
    tx.run_many(_ADD_SUM, [(*key, *total) for key, total in sorted(totals.items())])


def charges_of(tx: Transaction, subject: str, sequence: int) -> list[Charge]:
    """All charges of one interval or term, with reversals, in the order in which they were booked."""
    rows = tx.all(
        f"{_SELECT} WHERE subject = :subject AND sequence = :sequence ORDER BY segment",
        subject=subject,
        sequence=sequence,
    )
    return [booked_from(row).charge for row in rows]


def micros_of(tx: Transaction, subjects: Sequence[str], currency: str) -> dict[str, int]:
    """What was booked for each of some instances in a currency."""
    if not subjects:
        return {}
    marks, values = in_list(subjects)
    rows = tx.all(
        f"SELECT subject, SUM(micros) FROM charge WHERE subject IN ({marks}) AND currency = :currency GROUP BY subject",
        currency=currency,
        **values,
    )
    return {row[0]: int(row[1]) for row in rows}


def booked_until(tx: Transaction, subject: str, sequence: int) -> int:
    """The time up to which an interval is charged. 0: not at all."""
    return number(
        tx,
        "SELECT COALESCE(MAX(until_us), 0) FROM charge c WHERE subject = :subject AND sequence = :sequence"
        " AND kind <> 'reversal' AND NOT EXISTS (SELECT 1 FROM charge r WHERE r.subject = c.subject"
        " AND r.sequence = c.sequence AND r.kind = 'reversal' AND r.reverses = c.segment)",
        subject=subject,
        sequence=sequence,
    )


def open_booked_until(tx: Transaction, project_id: ProjectId, closed_us: int) -> dict[tuple[str, int], int]:
    """The time up to which the open intervals of a project are charged, by instance and sequence. Those that began
    after the last closed day are left out: they have no charge.

    The last charge of an interval counts unless it is a reversal. It usually ends with the closed day.
    """
    rows = tx.all(
        "SELECT m.instance_id, m.open_sequence, c.until_us, c.kind FROM meter_instance m JOIN charge c"
        " ON c.subject = m.instance_id AND c.sequence = m.open_sequence AND c.segment = (SELECT MAX(s.segment)"
        " FROM charge s WHERE s.subject = m.instance_id AND s.sequence = m.open_sequence)"
        " WHERE m.project_id = :project AND m.open_sequence IS NOT NULL AND m.from_us < :closed",
        project=project_id,
        closed=closed_us,
    )
    return {
        (id, sequence): until_us
        if kind != "reversal" and until_us == closed_us
        else booked_until(tx, id, sequence)
        for id, sequence, until_us, kind in rows
    }


def lines(
    tx: Transaction, project_id: ProjectId, month: str, *, after: int, limit: int, subject: str = ""
) -> list[Booked]:
    """The charges of a project in a month after the number `after`. With `subject`, only those of one instance."""
    rows = tx.all(
        f"{_SELECT} WHERE project_id = :project AND month = :month AND number > :after"
        " AND (:subject = '' OR subject = :subject) ORDER BY number LIMIT :limit",
        project=project_id,
        month=month,
        after=after,
        subject=subject,
        limit=limit,
    )
    return [booked_from(row) for row in rows]


def sums(tx: Transaction, project_id: ProjectId, month: str) -> list[ChargeSum]:
    rows = tx.all(
        "SELECT currency, gpu, member, labels, kind, lines, micros, list_micros FROM charge_sum"
        " WHERE project_id = :project AND month = :month ORDER BY currency, gpu, member, labels, kind",
        project=project_id,
        month=month,
    )
    return [
        ChargeSum(
            currency=row[0], gpu=row[1], member=row[2], labels=row[3], kind=row[4], lines=row[5], micros=row[6],
            list_micros=row[7],
        )
        for row in rows
    ]  # fmt: skip


def _summed(
    rows: Iterable[tuple[Any, ...]], totals: dict[tuple[str, ...], list[int]]
) -> Iterator[tuple[Any, ...]]:
    """Add each row to the totals while it passes, so that rows need not be kept."""
    for row in rows:
        key, (micros, list_micros) = _alike(row), _amounts(row)
        total = totals.get(key)
        if total is None:
            totals[key] = [1, micros, list_micros]
        else:
            total[0] += 1
            total[1] += micros
            total[2] += list_micros
        yield row


def sums_by_name(tx: Transaction, project_id: ProjectId, month: str) -> list[tuple[str, int, int]]:
    rows = tx.all(
        "SELECT name, COUNT(*), SUM(micros) FROM charge WHERE project_id = :project AND month = :month"
        " GROUP BY name",
        project=project_id,
        month=month,
    )
    return [(name, lines, int(micros)) for name, lines, micros in rows]  # PostgreSQL sums up to a NUMERIC


def sums_by_day(
    tx: Transaction, project_id: ProjectId, month: str, currency: str
) -> list[tuple[str, int, int]]:
    """Day, number of charges and amount, oldest first. A charge counts on the day (UTC) on which it begins."""
    rows = tx.all(
        "SELECT from_us / 86400000000 AS day, COUNT(*), SUM(micros) FROM charge"
        " WHERE project_id = :project AND month = :month AND currency IN ('', :currency)"
        " GROUP BY from_us / 86400000000 ORDER BY day",
        project=project_id,
        month=month,
        currency=currency,
    )
    return [(f"{at_microseconds(day * DAY_US):%Y-%m-%d}", lines, int(micros)) for day, lines, micros in rows]


def has_cost(tx: Transaction, project_id: ProjectId) -> bool:
    """Whether anything was ever charged to a project."""
    row = tx.one(
        "SELECT 1 FROM charge WHERE project_id = :project AND currency <> '' LIMIT 1", project=project_id
    )
    return row is not None


def spent(tx: Transaction, project_id: ProjectId, month: str) -> dict[str, int]:
    """What is booked for a month, by currency."""
    found: dict[str, int] = {}
    for each in sums(tx, project_id, month):
        if each.currency:
            found[each.currency] = found.get(each.currency, 0) + each.micros
    return found


@lru_cache(maxsize=4096)
def _month_of_day(day: int) -> str:
    return at_microseconds(day * DAY_US).strftime("%Y-%m")


def month_of(us: int) -> str:
    """`2026-11`, UTC."""
    return _month_of_day(us // DAY_US)


def _row(number: int, charge: Charge, now_us: int) -> tuple[Any, ...]:
    s, part = charge.subject, charge.slice
    return (
        number, s.id, s.generation, s.sequence, charge.segment, charge.kind, charge.reverses, s.project_id,
        _month_of_day(part.from_us // DAY_US), part.from_us, part.until_us, part.currency, sum(part.amounts),
        *part.amounts, part.list_micros, part.egress_bytes, part.version, part.discount_bp, part.purchase_id,
        *_HELD.row(s.held), now_us,
    )  # fmt: skip


def booked_from(row: Row) -> Booked:
    (
        number, subject, generation, sequence, segment, kind, reverses, project, month, from_us, until_us, currency, _,
        *rest,
    ) = row  # fmt: skip
    amounts, rest = Amounts(*rest[:8]), rest[8:]
    list_micros, egress_bytes, version, discount_bp, purchase_id, *held, at_us = rest
    whole = ChargeSlice(
        from_us, until_us, currency, amounts, list_micros, egress_bytes, version, discount_bp, purchase_id
    )
    return Booked(
        number=number,
        at_us=at_us,
        month=month,
        charge=Charge(
            subject=Subject(
                id=subject, generation=generation, sequence=sequence, project_id=project, held=_HELD.value(tuple(held))
            ),
            segment=segment, kind=kind, reverses=reverses, slice=whole,
        ),
    )  # fmt: skip
