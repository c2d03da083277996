"""Converters of bills, their lines, costs and verification."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import asdict

from teraflock.base.filling import filled
from teraflock.bill.charge.model import Amounts
from teraflock.bill.charge.store import Booked
from teraflock.bill.costs import InstanceCost
from teraflock.bill.margin.report import Margin, MarginRow
from teraflock.bill.service import Bill, SumBy
from teraflock.bill.times import moment
from teraflock.bill.verify.service import Verdict
from teraflock.fleet.model import Idle
from teraflock.wire.bill import (
    BillAnswer,
    CostAnswer,
    FaultAnswer,
    GroupAnswer,
    LineAnswer,
    MarginAnswer,
    MarginRowAnswer,
    VerdictAnswer,
)


def bill_answer(bill: Bill, by: SumBy, names: Mapping[str, str]) -> BillAnswer:
    """`names` maps keys of groups to the names to show."""
    return filled(
        BillAnswer,
        bill,
        by=by,
        groups=tuple(
            GroupAnswer(name=names.get(each.name, each.name), lines=each.lines, micros=each.micros)
            for each in bill.groups
        ),
    )


def line_answer(line: Booked) -> LineAnswer:
    charge, part, held = line.charge, line.charge.slice, line.charge.subject.held
    return filled(
        LineAnswer,
        part,
        number=line.number,
        kind=charge.kind,
        subject=charge.subject.id,
        name=held.name,
        starts_at=moment(part.from_us),
        ends_at=moment(part.until_us),
        **asdict(held.size),
        mode=held.mode,
        discount_percent=part.discount_bp / 100,
        member=held.member,
        labels=msgspec.json.decode(held.labels or "{}", type=dict[str, str]),
        micros=charge.micros,
        parts={name: micros for name, micros in zip(Amounts._fields, part.amounts, strict=True) if micros},
    )


def cost_answer(instance_id: str, name: str, cost: InstanceCost, idle: Idle | None = None) -> CostAnswer:
    return filled(
        CostAnswer,
        cost,
        idle_gpus=idle.gpus if idle else 0,
        idle_since=idle.since if idle else None,
        instance_id=instance_id,
        name=name,
        paid_until=None if cost.paid_until_us is None else moment(cost.paid_until_us),
    )


def verdict_answer(verdict: Verdict) -> VerdictAnswer:
    return filled(
        VerdictAnswer,
        verdict,
        sound=verdict.is_sound,
        faults=tuple(FaultAnswer(where=each.where, what=each.what) for each in verdict.faults),
    )


def margin_answer(found: Margin) -> MarginAnswer:
    return filled(
        MarginAnswer,
        found,
        rows=tuple(map(_margin_row, found.rows)),
        totals=tuple(map(_margin_row, found.totals)),
    )


def _margin_row(row: MarginRow) -> MarginRowAnswer:
    return filled(MarginRowAnswer, row)
