"""Purchases and their limits on the wire."""

from teraflock.base.filling import filled
from teraflock.bill.purchase.model import Preview, Purchase, PurchaseLimit, Term
from teraflock.bill.times import moment
from teraflock.wire.purchase import LimitAnswer, PreviewAnswer, PurchaseAnswer, TermAnswer


def preview_answer(found: Preview) -> PreviewAnswer:
    return filled(PreviewAnswer, found, starts_at=moment(found.from_us), paid_until=moment(found.until_us))


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
    return filled(
        PurchaseAnswer,
        purchase,
        instance=instance,
        currency=terms[-1].currency,
        paid_until=moment(terms[-1].until_us),
        terms=tuple(
            filled(TermAnswer, each, starts_at=moment(each.from_us), ends_at=moment(each.until_us))
            for each in terms
        ),
    )
