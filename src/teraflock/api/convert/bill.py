"""Converters of bills, their lines, costs and verification."""

from collections.abc import Mapping

import msgspec
from msgspec.structs import asdict

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
    return BillAnswer(
        project_id=bill.project_id,
        month=bill.month,
        currency=bill.currency,
        micros=bill.micros,
        unbooked_micros=bill.unbooked_micros,
        list_micros=bill.list_micros,
        lines=bill.lines,
        micros_per_hour=bill.micros_per_hour,
        forecast_micros=bill.forecast_micros,
        by=by,
        groups=tuple(
            GroupAnswer(name=names.get(each.name, each.name), lines=each.lines, micros=each.micros)
            for each in bill.groups
        ),
    )


def line_answer(line: Booked) -> LineAnswer:
    charge, part, held = line.charge, line.charge.slice, line.charge.subject.held
    return LineAnswer(
        number=line.number,
        kind=charge.kind,
        subject=charge.subject.id,
        name=held.name,
        starts_at=moment(part.from_us),
        ends_at=moment(part.until_us),
        **asdict(held.size),
        egress_bytes=part.egress_bytes,
        mode=held.mode,
        purchase_id=part.purchase_id,
        discount_percent=part.discount_bp / 100,
        version=part.version,
        member=held.member,
        labels=msgspec.json.decode(held.labels or "{}", type=dict[str, str]),
        currency=part.currency,
        micros=charge.micros,
        parts={name: micros for name, micros in zip(Amounts._fields, part.amounts, strict=True) if micros},
        list_micros=part.list_micros,
    )


def cost_answer(instance_id: str, name: str, cost: InstanceCost, idle: Idle | None = None) -> CostAnswer:
    return CostAnswer(
        idle_gpus=idle.gpus if idle else 0,
        idle_since=idle.since if idle else None,
        instance_id=instance_id,
        name=name,
        currency=cost.currency,
        micros_per_hour=cost.micros_per_hour,
        micros=cost.micros,
        is_priced=cost.is_priced,
        paid_until=None if cost.paid_until_us is None else moment(cost.paid_until_us),
    )


def verdict_answer(verdict: Verdict) -> VerdictAnswer:
    return VerdictAnswer(
        sound=verdict.is_sound,
        instances=verdict.instances,
        charges=verdict.charges,
        entries=verdict.entries,
        changes_to_come=verdict.changes_to_come,
        faults=tuple(FaultAnswer(where=each.where, what=each.what) for each in verdict.faults),
        faults_beyond=verdict.faults_beyond,
    )


def margin_answer(found: Margin) -> MarginAnswer:
    return MarginAnswer(
        month=found.month,
        by=found.by,
        rows=tuple(map(_margin_row, found.rows)),
        totals=tuple(map(_margin_row, found.totals)),
        hosts_without_cost=found.hosts_without_cost,
    )


def _margin_row(row: MarginRow) -> MarginRowAnswer:
    return MarginRowAnswer(
        id=row.id,
        name=row.name,
        currency=row.currency,
        revenue_micros=row.revenue_micros,
        cost_micros=row.cost_micros,
        idle_micros=row.idle_micros,
        margin_micros=row.margin_micros,
    )
