"""Purchases and their limits on the wire."""

from teraflock.bill.purchase.model import Preview, Purchase, PurchaseLimit, Term
from teraflock.bill.times import moment
from teraflock.wire.purchase import LimitAnswer, PreviewAnswer, PurchaseAnswer, TermAnswer


def preview_answer(found: Preview) -> PreviewAnswer:
    return PreviewAnswer(
        currency=found.currency,
        fee_micros=found.fee_micros,
        month_micros=found.month_micros,
        committed_micros=found.committed_micros,
        starts_at=moment(found.from_us),
        paid_until=moment(found.until_us),
    )


def limit_answer(limit: PurchaseLimit, member: str, currency: str, month: str) -> LimitAnswer:
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
