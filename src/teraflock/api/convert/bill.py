"""Prices, bills and what belongs to them on the wire."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.clock import LATEST, microseconds
from teraflock.base.money import HOURS_PER_MONTH, micros_per
from teraflock.bill.budget.model import Standing
from teraflock.bill.charge.model import Amounts
from teraflock.bill.charge.store import Booked
from teraflock.bill.costs import Cost
from teraflock.bill.credit.model import Grant
from teraflock.bill.invoice.model import Invoice
from teraflock.bill.invoice.rules import number_text
from teraflock.bill.price.model import FOREVER_US, Period, Table, Unit
from teraflock.bill.purchase.model import Limit, Preview, Purchase, Term
from teraflock.bill.quote import Quote
from teraflock.bill.service import Bill, SumBy
from teraflock.bill.times import moment
from teraflock.bill.verify.service import Verdict
from teraflock.fleet.model import Idle
from teraflock.instance.model import Shape
from teraflock.wire.bill import (
    BillAnswer,
    BudgetAnswer,
    CostAnswer,
    CreditAnswer,
    FaultAnswer,
    GroupAnswer,
    InvoiceAnswer,
    LimitAnswer,
    LineAnswer,
    PreviewAnswer,
    PricesAnswer,
    PurchaseAnswer,
    QuoteAnswer,
    TermAnswer,
    UnitAnswer,
    VerdictAnswer,
)

_LATEST_US: Final = microseconds(LATEST)


def prices_answer(period: Period) -> PricesAnswer:
    prices = period.prices
    tables = [("", prices.house)]
    tables += [(f"region {name}", table) for name, table in sorted(prices.regions.items())]
    tables += [(f"host {name}", table) for name, table in sorted(prices.hosts.items())]
    return PricesAnswer(
        version=period.version,
        currency=prices.currency,
        starts_at=moment(period.from_us),
        ends_at=None if period.until_us == FOREVER_US else moment(period.until_us),
        minimum_seconds=prices.minimum_seconds,
        monthly_percent_off=prices.monthly_bp / 100,
        spot_percent_off=prices.spot_bp / 100,
        reserved_percent_off={str(years): bp / 100 for years, bp in sorted(prices.reserved_bp.items())},
        upfront_percent_off=prices.upfront_bp / 100,
        long_term_percent_off={str(days): bp / 100 for days, bp in prices.long_term},
        refund_percent=prices.refund_bp / 100,
        tax_name=prices.tax_name,
        tax_percent=prices.tax_bp / 100,
        items=tuple(item for place, table in tables for item in _items(place, table)),
    )


def _items(place: str, table: Table) -> Iterator[UnitAnswer]:
    for name, unit in sorted(table.gpu.items()):
        yield _unit_answer(name, place, unit)
    for name in ("vcpu", "ram", "disk", "snapshot"):
        found: Unit | None = getattr(table, name)
        if found is not None:
            yield _unit_answer(name, place, found)
    if table.egress is not None:
        yield _unit_answer("egress", place, Unit(on_demand=table.egress))


def _unit_answer(what: str, place: str, unit: Unit) -> UnitAnswer:
    return UnitAnswer(
        what=what,
        place=place,
        on_demand_micros_per_hour=micros_per(unit.on_demand, "hour"),
        on_demand_micros_per_month=unit.on_demand,
        monthly_micros=unit.monthly,
        spot_micros_per_hour=None if unit.spot is None else unit.spot // HOURS_PER_MONTH,
    )


def quote_answer(quote: Quote, shape: Shape) -> QuoteAnswer:
    return QuoteAnswer(
        currency=quote.currency,
        instances=quote.instances,
        mode=quote.mode,
        gpu=shape.gpu,
        gpus=shape.gpus,
        vcpus=shape.vcpus,
        ram_bytes=shape.ram_bytes,
        disk_bytes=shape.disk_bytes,
        micros_per_hour=quote.micros_per_hour,
        micros_per_month=quote.micros_per_month,
        micros_stopped_per_month=quote.micros_stopped_per_month,
        egress_micros_per_gb=quote.egress_micros_per_gb,
        snapshot_micros_per_gb=quote.snapshot_micros_per_gb,
        region=quote.region,
        micros_until=quote.micros_until_deadline,
        minimum_micros=quote.minimum_micros,
        monthly_micros=quote.monthly_micros,
        reserved_micros={str(years): micros for years, micros in quote.reserved_micros.items()},
        version=quote.version,
        is_priced=quote.is_priced,
    )


def bill_answer(bill: Bill, by: SumBy, names: Mapping[str, str]) -> BillAnswer:
    """`names` are those to be shown in place of what groups are called."""
    return BillAnswer(
        project_id=bill.project_id,
        month=bill.month,
        currency=bill.currency,
        micros=bill.micros,
        unbooked_micros=bill.unbooked_micros,
        list_micros=bill.list_micros,
        lines=bill.lines,
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
        gpu=held.size.gpu,
        gpus=held.size.gpus,
        vcpus=held.size.vcpus,
        ram_bytes=held.size.ram_bytes,
        disk_bytes=held.size.disk_bytes,
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


def cost_answer(instance_id: str, name: str, cost: Cost, idle: Idle | None = None) -> CostAnswer:
    return CostAnswer(
        idle_gpus=idle.gpus if idle else 0,
        idle_since=idle.since if idle else None,
        instance_id=instance_id,
        name=name,
        currency=cost.currency,
        micros_per_hour=cost.micros_per_hour,
        micros=cost.micros,
        is_priced=cost.is_priced,
        paid_until=_moment(cost.paid_until_us),
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


def budget_answer(standing: Standing) -> BudgetAnswer:
    budget = standing.budget
    return BudgetAnswer(
        currency=budget.currency,
        micros=budget.micros,
        own_micros=standing.own_micros,
        cap_micros=standing.cap_micros,
        levels=budget.levels,
        hard_stop=budget.hard_stop,
        notice_seconds=budget.notice_seconds,
        month=standing.month,
        spent_micros=standing.spent_micros,
        micros_per_hour=standing.micros_per_hour,
        is_spent=standing.spent_micros >= budget.micros,
        levels_reached=standing.levels_reached,
        stops_at=_moment(standing.stop_at_us),
        announced_at=_moment(standing.announced_us),
        stopped_at=_moment(standing.stopped_us),
    )


def _moment(us: int | None) -> datetime | None:
    return None if us is None else moment(us)


def credit_answer(grant: Grant) -> CreditAnswer:
    return CreditAnswer(
        id=grant.id,
        reason=grant.reason,
        currency=grant.currency,
        micros=grant.micros,
        left_micros=grant.left_micros,
        starts_at=moment(grant.from_us),
        expires_at=None if grant.expires_us > _LATEST_US else moment(grant.expires_us),
        is_expired=grant.expired,
    )


def preview_answer(found: Preview) -> PreviewAnswer:
    return PreviewAnswer(
        currency=found.currency,
        fee_micros=found.fee_micros,
        month_micros=found.month_micros,
        committed_micros=found.committed_micros,
        starts_at=moment(found.from_us),
        paid_until=moment(found.until_us),
    )


def limit_answer(limit: Limit, member: str, currency: str, month: str) -> LimitAnswer:
    return LimitAnswer(
        member_id=limit.member_id,
        member=member,
        currency=currency,
        micros=limit.micros,
        month=month,
        spent_micros=limit.spent_micros if limit.month == month else 0,
    )


def purchase_answer(purchase: Purchase, terms: list[Term], instance: str = "") -> PurchaseAnswer:
    return PurchaseAnswer(
        id=purchase.id,
        instance_id=purchase.instance_id,
        instance=instance,
        mode=purchase.mode,
        years=purchase.years,
        upfront=purchase.upfront,
        renews=purchase.renews,
        ended=purchase.ended,
        currency=terms[-1].currency,
        paid_until=moment(terms[-1].until_us),
        terms=tuple(
            TermAnswer(
                kind=each.kind,
                starts_at=moment(each.from_us),
                ends_at=moment(each.until_us),
                fee_micros=each.fee_micros,
                month_micros=each.month_micros,
            )
            for each in terms
        ),
    )


def invoice_answer(invoice: Invoice, open_micros: int) -> InvoiceAnswer:
    return InvoiceAnswer(
        number=number_text(invoice),
        month=invoice.month,
        currency=invoice.currency,
        usage_micros=invoice.usage_micros,
        credit_micros=invoice.credit_micros,
        tax_micros=invoice.tax_micros,
        paid_micros=invoice.paid_micros,
        due_micros=invoice.due_micros,
        open_micros=open_micros,
        issued_at=moment(invoice.issued_at_us),
    )
