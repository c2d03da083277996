"""Table and JSON show the same digits for every price and currency."""

from fractions import Fraction
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.offer.random_offers import ON, RATES, random_offers

from teraflock.base.money import SECONDS, Period, decimal_text
from teraflock.cli.offer.list import PRICE_DECIMALS, _cells
from teraflock.offer.model import OfferLine
from teraflock.offer.rules import price_in
from teraflock.wire.offer import shape_offer

PERIODS: tuple[Period, ...] = ("hour", "month")
SEEDS, CURRENCIES, PER = (
    st.integers(0, 2**32),
    st.sampled_from(("USD", "CNY", "EUR")),
    st.sampled_from(PERIODS),
)


@settings(deadline=None)
@given(seed=SEEDS, currency=CURRENCIES, per=PER)
def test_table_and_json_show_the_same_price(seed: int, currency: str, per: Period) -> None:
    for offer in random_offers(Random(seed), 20):
        shape = shape_offer(offer, currency=currency, per=per, rates=RATES, on=ON)
        cells = _cells(OfferLine(offer, ("",), 1), RATES, currency, per, ON)
        of_machine, of_each = shape.price_micros, shape.price_per_gpu_micros
        assert cells[8] == (
            offer.standing if of_machine is None else decimal_text(of_machine, PRICE_DECIMALS[per])
        )
        assert cells[10] == ("" if of_each is None else decimal_text(of_each, PRICE_DECIMALS[per]))


@settings(deadline=None)
@given(seed=SEEDS, currency=CURRENCIES, per=PER, each=st.booleans())
def test_a_price_is_rounded_once(seed: int, currency: str, per: Period, each: bool) -> None:
    for offer in random_offers(Random(seed), 20):
        parts = offer.gpu_count if each else 1
        shown = price_in(offer, currency, RATES, ON, per=per, each=each)
        if offer.price_micros_per_month is None or not parts:
            assert shown is None
            continue
        rate, own = RATES.rate(currency, ON), RATES.rate(offer.currency, ON)
        exact = Fraction(offer.price_micros_per_month * rate.micros_per_usd, own.micros_per_usd)
        assert shown == round(exact * SECONDS[per] / SECONDS["month"] / parts)  # half to even
