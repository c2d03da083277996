"""Charges do not depend on how time is split, are never negative, and match what is due."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.bill.world import GB, RATES, START

from teraflock.base.clock import DAY_US, SECOND_US
from teraflock.base.size import Size
from teraflock.bill.charge.model import Charge, ChargeSlice, Covered
from teraflock.bill.charge.rules import MONTH_US, Tariff, accrued, booking, slices, standing, subject_of
from teraflock.bill.price.book import read_book
from teraflock.bill.price.model import FOREVER_US, Period, PriceBook
from teraflock.bill.times import microseconds
from teraflock.meter.model import Holding, Interval
from teraflock.tenant.model import ProjectId

START_US = microseconds(START)


def period(version: int, from_us: int, **prices: str) -> Period:
    lines = "".join(f"  {name.replace('_', '-')}: {value}\n" for name, value in prices.items())
    (draft,) = read_book(f"- from: 2020-01-01\n  currency: USD\n{lines}", name="book", rates=RATES)
    return Period(version=version, from_us=from_us, until_us=FOREVER_US, prices=draft.prices)


BOOK = PriceBook(
    [
        period(1, START_US - DAY_US, gpu="{V100: 3.061237/hour}", vcpu="0.0123/hour", ram="0.00213/hour",
               disk="0.1/month", egress="0.05", minimum="60 s", spot="60%", long_term="{2 days: 7%, 5 days: 11%}"),
        period(2, START_US + 3 * DAY_US + 12_345, gpu="{V100: 2.9/hour}", vcpu="0.0119/hour", ram="0.002/hour",
               disk="0.1/month", egress="0.04", minimum="60 s", spot="60%", long_term="{2 days: 8%}"),
    ]
)  # fmt: skip
TARIFF = Tariff(BOOK, "USD")


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    run_us = START_US + draw(st.integers(0, 2 * DAY_US))
    from_us = run_us + draw(st.sampled_from([0, 5 * SECOND_US, 3 * DAY_US]))
    length = draw(st.one_of(st.integers(0, 200 * SECOND_US), st.integers(0, 9 * DAY_US)))
    held = Holding(
        size=Size(
            gpu="V100-SXM2", gpus=draw(st.integers(0, 8)), vcpus=draw(st.integers(0, 64)),
            ram_bytes=draw(st.integers(0, 512 * GB)), disk_bytes=draw(st.integers(0, 4096 * GB)),
        ),
        mode=draw(st.sampled_from(["on-demand", "spot"])),
    )  # fmt: skip
    return Interval(
        instance_id="ins", sequence=3, generation=1, project_id=ProjectId("prj"), from_us=from_us,
        until_us=from_us + length,
        run_us=draw(st.sampled_from([run_us, None])), ends_run=draw(st.booleans()), operator_fault=draw(st.booleans()),
        held=held,
    )  # fmt: skip


def total(made: list[ChargeSlice]) -> int:
    return sum(sum(each.amounts) for each in made)


@given(interval=intervals(), cuts=st.lists(st.floats(0, 1), max_size=6))
def test_charges_of_an_open_interval_are_a_prefix_of_the_final_ones(
    interval: Interval, cuts: list[float]
) -> None:
    """Booking at any times and at the end gives the same charges as one booking at the end."""
    charges: list[Charge] = []
    length = interval.until_us - interval.from_us
    opened = replace(interval, until_us=FOREVER_US, ends_run=False)
    days = sorted({int(interval.from_us + length * cut) // DAY_US * DAY_US for cut in cuts})
    for until_us in (us for us in days if interval.from_us < us <= interval.until_us):
        charges += booking(
            subject_of(opened), standing(charges), slices(opened, until_us, TARIFF), len(charges)
        )
    due = slices(interval, interval.until_us, TARIFF)
    charges += booking(subject_of(interval), standing(charges), due, len(charges))
    assert sorted(charge.slice for charge in standing(charges)) == sorted(due)
    assert sum(charge.micros for charge in charges) == total(due)
    assert [charge.segment for charge in charges] == list(range(len(charges)))
    again = booking(subject_of(interval), standing(charges), due, len(charges))
    assert again == [], "booked again, nothing is added"


@given(interval=intervals())
def test_charges_cover_the_interval_and_none_is_negative(interval: Interval) -> None:
    made = [each for each in slices(interval, interval.until_us, TARIFF) if each.until_us > each.from_us]
    edges = [interval.from_us, *(each.until_us for each in made)]
    assert [each.from_us for each in made] == edges[:-1]
    assert edges[-1] == interval.until_us
    for each in made:
        assert all(micros >= 0 for micros in each.amounts)
        assert each.from_us // DAY_US == (each.until_us - 1) // DAY_US, "within one day"
        assert BOOK.at(each.from_us) is BOOK.at(each.until_us - 1), "at one price"
        assert sum(each.amounts) <= each.list_micros + 6


@given(interval=intervals(), share=st.floats(0, 1), covered=st.booleans(), data=st.data())
def test_accrued_amounts_equal_the_sums_of_slices(
    interval: Interval, share: float, covered: bool, data: st.DataObject
) -> None:
    opened = replace(interval, until_us=FOREVER_US, ends_run=False)
    since_us = interval.from_us + int((interval.until_us - interval.from_us) * share)
    half = replace(interval.held.size, gpus=interval.held.size.gpus // 2)
    covers = [Covered(purchase_id="pur", from_us=since_us, until_us=FOREVER_US, size=half)] * covered
    made = slices(opened, interval.until_us, TARIFF, covers)
    borders = [interval.from_us, *(each.until_us for each in made)]
    from_us, until_us = (data.draw(st.sampled_from(borders)) for _ in range(2))
    between = [each for each in made if from_us <= each.from_us < until_us]
    assert accrued(opened, from_us, until_us, TARIFF, covers) == total(between)


@given(interval=intervals(), earlier=st.floats(0, 1))
def test_an_earlier_stop_reverses_the_excess(interval: Interval, earlier: float) -> None:
    due = slices(interval, interval.until_us, TARIFF)
    charges = booking(subject_of(interval), (), due, 0)
    end_us = interval.from_us + int((interval.until_us - interval.from_us) * earlier)
    cut = replace(interval, until_us=end_us, revision=1)
    now_due = slices(cut, end_us, TARIFF)
    charges += booking(subject_of(cut), standing(charges), now_due, len(charges))
    assert sum(charge.micros for charge in charges) == total(now_due)
    assert sorted(charge.slice for charge in standing(charges)) == sorted(now_due)


@given(interval=intervals(), share=st.floats(0, 1))
def test_prepaid_usage_is_not_charged_again(interval: Interval, share: float) -> None:
    held = interval.held
    from_us = interval.from_us + int((interval.until_us - interval.from_us) * share)
    cover = Covered(purchase_id="pur", from_us=from_us, until_us=FOREVER_US, size=held.size)
    made = slices(interval, interval.until_us, TARIFF, [cover])
    for each in made:
        if each.from_us >= from_us:
            assert sum(each.amounts[:5]) == 0
            assert each.purchase_id == ("pur" if each.until_us > each.from_us else "")


def test_an_hour_of_everything_to_the_micro_unit() -> None:
    held = Holding(size=Size(gpu="V100-SXM2", gpus=2, vcpus=16, ram_bytes=122 * GB, disk_bytes=500 * GB))
    hour = Interval(
        instance_id="ins", sequence=3, generation=1, project_id=ProjectId("prj"), from_us=START_US,
        until_us=START_US + 3600 * SECOND_US, run_us=START_US, held=held,
    )  # fmt: skip
    (made,) = slices(hour, hour.until_us, TARIFF)
    assert made.amounts[:4] == (
        2 * 3_061_237,
        16 * 12_300,
        122 * 2_130,
        500 * 100_000 * 3600 * SECOND_US // MONTH_US,
    )


def test_a_short_run_costs_the_minimum_unless_it_was_lost() -> None:
    held = Holding(size=Size(gpu="V100-SXM2", gpus=1, vcpus=0, disk_bytes=100 * GB))
    run = Interval(
        instance_id="ins", sequence=3, generation=1, project_id=ProjectId("prj"), from_us=START_US,
        until_us=START_US + 10 * SECOND_US, run_us=START_US, ends_run=True, held=held,
    )  # fmt: skip
    (made,) = slices(run, run.until_us, TARIFF)
    whole = Fraction(3_061_237 * 60, 3600)
    assert made.amounts.gpu + made.amounts.minimum in (int(whole), int(whole) - 1)
    (lost,) = slices(replace(run, operator_fault=True), run.until_us, TARIFF)
    assert lost.amounts.minimum == 0
