"""What terms cost and cover. Pure.

Invariants:
- a month of a purchase is a calendar month from the day of purchase. Bought on the 31st, it begins on the last day of
  shorter months and on the 31st of longer ones;
- terms of one instance do not overlap: an upgrade or an early end cuts off the current term;
- a fee is rounded once, half to even, from exact prices. The rest of a month is counted in microseconds.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from teraflock.base.errors import BadInput, Refused
from teraflock.base.money import divided
from teraflock.base.quantities import GIB
from teraflock.base.size import Size
from teraflock.bill.charge.model import Covered
from teraflock.bill.price.model import BASIS, Period, PricedPeriod, PricePlace
from teraflock.bill.purchase.model import Purchase, Term
from teraflock.bill.times import microseconds, moment, months_later


def month_micros(cover: Size, period: Period, currency: str, place: PricePlace, *, years: int = 0) -> int:
    """The price of a size for a month, if it is bought by the month or for years."""
    units = PricedPeriod(period, currency).units(cover.gpu, "monthly", place)
    each = units.gpu * cover.gpus + units.vcpu * cover.vcpus
    by_gb = units.ram * cover.ram_bytes + units.disk * cover.disk_bytes
    less = BASIS - (period.prices.reserved_bp.get(years, 0) if years else 0)
    return divided((each * GIB + by_gb) * less, GIB * BASIS)


def bought(
    purchase: Purchase, cover: Size, period: Period, currency: str, place: PricePlace, at_us: int
) -> Term:
    """The first term, from `at_us` on."""
    if purchase.years and purchase.years not in period.prices.reserved_bp:
        offered = ", ".join(map(str, sorted(period.prices.reserved_bp))) or "none"
        raise BadInput(
            f"The price book has no discount for {purchase.years} year{'s' * (purchase.years > 1)}",
            hint=f"Years offered: {offered}",
        )
    month = month_micros(cover, period, currency, place, years=purchase.years)
    months = 12 * purchase.years if purchase.upfront else 1
    return Term(
        purchase_id=purchase.id, sequence=0, kind="bought", instance_id=purchase.instance_id, from_us=at_us,
        until_us=_months_on(at_us, months), covers=cover, currency=currency, month_micros=month,
        fee_micros=_upfront(month, period, purchase.years) if purchase.upfront else month,
    )  # fmt: skip


def next_term(purchase: Purchase, terms: Sequence[Term], period: Period, place: PricePlace) -> Term | None:
    """The term after the last one. None: there is none."""
    first, last = terms[0], terms[-1]
    months = _months_between(first.from_us, last.until_us)
    renews = purchase.years == 0 or months % (12 * purchase.years) == 0
    if renews and not purchase.renews:
        return None
    length = 12 * purchase.years if purchase.upfront else 1
    month = last.month_micros
    if renews:
        month = month_micros(last.covers, period, last.currency, place, years=purchase.years)
    return replace(
        last, sequence=last.sequence + 1, kind="renewed" if renews else "continued", from_us=last.until_us,
        until_us=_months_on(first.from_us, months + length), month_micros=month,
        fee_micros=_upfront(month, period, purchase.years) if purchase.upfront else month,
    )  # fmt: skip


def upgraded(
    purchase: Purchase, terms: Sequence[Term], cover: Size, period: Period, place: PricePlace, at_us: int
) -> Term:
    """A larger size for the rest of the term. The fee is the difference in price for the rest."""
    last = terms[-1]
    if not _includes(cover, last.covers):
        raise Refused(
            "A purchase cannot be reduced", hint="End it, or let it expire, and buy the smaller size"
        )
    month = month_micros(cover, period, last.currency, place, years=purchase.years)
    whole = (max(0, month - last.month_micros)) * _months_between(_paid_from(terms), last.until_us)
    left, length = last.until_us - at_us, last.until_us - _paid_from(terms)
    return replace(
        last, sequence=last.sequence + 1, kind="upgraded", from_us=at_us, covers=cover,
        month_micros=max(month, last.month_micros), fee_micros=divided(whole * left, length),
    )  # fmt: skip


def ended(purchase: Purchase, terms: Sequence[Term], period: Period | None, at_us: int) -> Term:
    """End now. The rest of the month is refunded as the price book says."""
    last = terms[-1]
    if purchase.mode == "reserved" and at_us < last.until_us:
        raise Refused("A reservation cannot be ended early", hint="Use `--no-renew` to let it expire")
    refund_bp = period.prices.refund_bp if period else 0
    left, length = max(0, last.until_us - at_us), last.until_us - _paid_from(terms)
    back = divided(last.month_micros * left * refund_bp, length * BASIS)
    return replace(
        last, sequence=last.sequence + 1, kind="ended", from_us=at_us, until_us=at_us,
        month_micros=0, fee_micros=-back,
    )  # fmt: skip


def covered(terms: Iterable[Term]) -> list[Covered]:
    """What is paid for, and when. A later term of a purchase cuts off an earlier one."""
    by_purchase: dict[str, list[Term]] = {}
    for term in sorted(terms, key=lambda term: (term.purchase_id, term.sequence)):
        by_purchase.setdefault(term.purchase_id, []).append(term)
    made = []
    for own in by_purchase.values():
        for term, later in zip(own, [*own[1:], None], strict=True):
            until_us = min(term.until_us, later.from_us) if later else term.until_us
            if until_us > term.from_us:
                made.append(
                    Covered(
                        purchase_id=term.purchase_id,
                        from_us=term.from_us,
                        until_us=until_us,
                        size=term.covers,
                    )
                )
    return sorted(made, key=lambda cover: cover.from_us)


def _upfront(month: int, period: Period, years: int) -> int:
    return divided(month * 12 * years * (BASIS - period.prices.upfront_bp), BASIS)


def _paid_from(terms: Sequence[Term]) -> int:
    """When the last fully paid time began."""
    return next(term.from_us for term in reversed(terms) if term.kind not in ("upgraded", "ended"))


def _includes(larger: Size, smaller: Size) -> bool:
    same_card = not smaller.gpus or larger.gpu == smaller.gpu
    return same_card and all(
        getattr(larger, name) >= getattr(smaller, name)
        for name in ("gpus", "vcpus", "ram_bytes", "disk_bytes")
    )


def _months_on(from_us: int, months: int) -> int:
    return microseconds(months_later(moment(from_us), months))


def _months_between(from_us: int, until_us: int) -> int:
    """The number of months until `until_us`. Exact for values from `_months_on`."""
    start, end = moment(from_us), moment(until_us)
    months = (end.year - start.year) * 12 + end.month - start.month
    return months if _months_on(from_us, months) <= until_us else months - 1
