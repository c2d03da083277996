"""A price book is accepted or refused as a whole, with the line of the mistake. Past prices never change."""

from contextlib import suppress
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.bill.world import BOOK, RATES, World

from teraflock.api.routes.price import prices_answer
from teraflock.base.errors import BadInput
from teraflock.base.money import micros_per
from teraflock.bill.price.book import Draft, read_book
from teraflock.bill.price.model import (
    FOREVER_US,
    Period,
    PriceBook,
    PricedPeriod,
    PricePlace,
    PriceSheet,
    PriceTable,
    Unit,
)
from teraflock.bill.price.service import PriceService
from teraflock.bill.price.sheet import BadBook
from teraflock.bill.times import microseconds


def read(text: str) -> tuple[Draft, ...]:
    return read_book(text, name="prices.yaml", rates=RATES, hosts={"node7": "hst_7"})


def book(*lines: str) -> str:
    return "\n".join(["- from: 2026-01-01", "  currency: USD", *(f"  {line}" for line in lines)])


REFUSED = {
    "an unknown GPU": (book("gpu:", "  V100: 3/hour", "  Voodoo 3000: 1/hour"), 5, "Voodoo 3000"),
    "a negative price": (book("vcpu: 0.1/hour", "ram: -0.2/hour"), 4, "is negative"),
    "a currency without a rate": ("- from: 2026-01-01\n  currency: XAU", 2, "no exchange rate"),
    "overlapping dates": (
        "- {from: 2026-01-01, until: 2026-06-01, currency: USD}\n- {from: 2026-05-01, currency: USD}",
        1,
        "overlap",
    ),
    "two periods with one start": (
        "- {from: 2026-01-01, currency: USD}\n\n- {from: 2026-01-01, currency: USD}",
        1,
        "same time",
    ),
    "an end before the beginning": (
        "- from: 2026-02-01\n  until: 2026-01-01\n  currency: USD",
        2,
        "before it starts",
    ),
    "a price without a period": (book("vcpu: 0.1"), 3, "not a price"),
    "a price per year": (book("vcpu: 0.1/year"), 3, "not a price"),
    "a price with words": (book("gpu: {V100: cheap}"), 3, "not a price"),
    "an address on spot": (
        book("address: {on-demand: 0.004/hour, spot: 0.001/hour}"),
        3,
        "`address` cannot have a spot price",
    ),
    "an address per GB": (book("regions: {north: {address: 1}}"), 3, "not a price"),
    "an unknown word": (book("vcpus: 0.1/hour"), 3, "unknown name"),
    "a duplicate name": (book("vcpu: 0.1/hour", "vcpu: 0.2/hour"), 4, "duplicate"),
    "one card by two names": (book("gpu:", "  H200: 3/hour", "  H200 SXM: 4/hour"), 5, "already"),
    "a discount above 100 %": (book("spot: 120%"), 3, "not a percentage"),
    "an unknown slice": (book("gpu: {A100 80GB:9g.90gb: 1/hour}"), 3, "no slice"),
    "four years": (book("reserved: {4 years: 10%}"), 3, "years"),
    "an unknown host": (book("hosts: {node8: {gpu: {V100: 1/hour}}}"), 3, "unknown host"),
    "not a list": ("currency: USD", 1, "list of periods"),
    "not YAML": ("- from: [", 1, "not valid YAML"),
    "not a date": ("- from: soon\n  currency: USD", 1, "not a date"),
    "a date no row can hold": (
        "- from: 9999-12-31T23:59:59-14:00\n  currency: USD",
        1,
        "too far in the future",
    ),
    "an end no row can hold": (book("until: 9999-12-31T23:59:59-14:00"), 3, "too far in the future"),
    "a time without a zone": ("- from: 2026-01-01 10:00\n  currency: USD", 1, "not a date"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_mistake_is_refused_with_its_line(what: str) -> None:
    text, line, words = REFUSED[what]
    with pytest.raises(BadBook) as refused:
        read(text)
    assert f"line {line}" in refused.value.sentence.replace("lines", "line")
    assert words in refused.value.sentence


@given(text=st.text(max_size=200))
def test_any_text_is_accepted_or_refused(text: str) -> None:
    """Never with an error of another kind."""
    with suppress(BadInput):
        read(text)


@given(lines=st.lists(st.sampled_from(BOOK.splitlines()[2:]), unique=True), cut=st.integers(0, 60))
def test_any_part_of_a_book_is_accepted_or_refused(lines: list[str], cut: int) -> None:
    with suppress(BadInput):
        read("- from: 2026-01-01\n  currency: USD\n" + "\n".join(lines)[: -cut or None])


def test_a_refused_book_changes_nothing() -> None:
    world = World()
    service = PriceService(world.database, world.clock, RATES)
    with pytest.raises(BadBook):
        service.take(book("vcpu: 0.1/hour", "ram: -1/hour"), name="prices.yaml", member="mem_1")
    assert service.versions() == []
    assert world.rows("SELECT * FROM price_period") == []


def units(text: str, gpu: str, mode: str = "on-demand", currency: str = "USD", **place: str) -> int:
    draft = read(text)[0]
    period = Period(version=1, from_us=draft.from_us, until_us=draft.until_us, prices=draft.prices)
    return PricedPeriod(period, currency).units(gpu, mode, PricePlace(**place)).gpu


def test_the_more_specific_name_and_place_apply() -> None:
    text = book(
        "gpu: {V100: 3/hour, V100 32GB: 4/hour}",
        "regions: {north: {gpu: {V100: 2/hour}}}",
        "hosts: {node7: {gpu: {V100: 1/hour}}}",
    )
    month = 730 * 10**6
    assert units(text, "V100-SXM2") == 3 * month
    assert units(text, "V100-SXM2-32") == 4 * month
    assert units(text, "V100-SXM2", region="north") == 2 * month
    assert units(text, "V100-SXM2", region="north", host="hst_7") == month
    assert units(text, "V100-SXM2", host="hst_8") == 3 * month
    assert units(text, "H100-SXM5") == 0


def test_a_slice_has_its_own_price_or_its_share_of_the_card() -> None:
    plain = book("gpu: {A100 80GB: 7/hour}")
    assert units(plain, "A100-SXM4-80:1g.10gb") == 7 * 730 * 142_900
    own = book("gpu:", "  A100 80GB: 7/hour", "  A100 80GB:1g.10gb: 0.5/hour")
    assert units(own, "A100-SXM4-80:1g.10gb") == 730 * 500_000


def test_modes_and_currencies() -> None:
    text = book(
        "gpu: {V100: {on-demand: 3.06/hour, monthly: 2233/month}, A100: 2/hour}", "monthly: 30%", "spot: 60%"
    )
    assert units(text, "V100-SXM2", "monthly") == 2_233_000_000
    assert units(text, "A100-SXM4-80", "monthly") == 730 * 2_000_000 * 7 // 10
    assert units(text, "A100-SXM4-80", "spot") == 730 * 2_000_000 * 4 // 10
    assert units(text, "A100-SXM4-80", currency="CNY") == 730 * 2_000_000 * 7_250 // 1000


def test_a_period_lasts_until_the_next() -> None:
    first, second = read("- {from: 2026-03-01, currency: USD}\n- {from: 2026-01-01, currency: USD}")
    assert (first.from_us, first.until_us) == (_us(2026, 1), second.from_us)
    assert second.until_us == FOREVER_US


@given(
    spans=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30)), min_size=1, max_size=6),
    at=st.integers(-5, 90),
)
def test_the_newest_book_with_a_period_applies(spans: list[tuple[int, int]], at: int) -> None:
    prices = PriceSheet(currency="USD", rates={}, general=PriceTable())
    periods = [
        Period(version=version, from_us=start, until_us=start + length, prices=prices)
        for version, (start, length) in enumerate(spans, start=1)
    ]
    whole = PriceBook(periods)
    found = [period for period in periods if period.from_us <= at < period.until_us]
    assert whole.at(at) == (found[-1] if found else None)
    changes = [us for us in range(at + 1, at + 40) if whole.at(us) is not whole.at(us - 1)]
    assert whole.changes(at, at + 40) == changes


def test_a_new_book_does_not_change_past_prices() -> None:
    world = World()
    service = PriceService(world.database, world.clock, RATES)
    service.take(book("vcpu: 1/hour"), name="one", member="mem_1")
    before_us = world.now_us
    world.wait(days=3)
    (period,) = service.take(book("vcpu: 9/hour"), name="two", member="mem_1")
    assert period.from_us == world.now_us
    counts = service.book()
    old = counts.at(world.now_us - 1)
    assert old is not None
    assert old.version == 1
    assert counts.at(before_us) is old


def test_a_book_with_only_past_periods_is_refused() -> None:
    world = World()
    with pytest.raises(BadInput, match="over"):
        PriceService(world.database, world.clock, RATES).take(
            "- {from: 2020-01-01, until: 2021-01-01, currency: USD}", name="old", member="mem_1"
        )


def _us(year: int, month: int) -> int:
    return microseconds(datetime(year, month, 1, tzinfo=UTC))


def test_spot_prices_apply_only_to_compute() -> None:
    prices = [f"{each}: 1/month" for each in ("vcpu", "ram", "disk", "snapshot")]
    text = book("gpu: {V100: 3/hour}", *prices, "spot: 60%")
    (draft,) = read_book(text, name="book", rates=RATES)
    period = Period(version=1, from_us=0, until_us=1, prices=draft.prices)
    spot = PricedPeriod(period, "USD").units("V100-SXM2", "spot", PricePlace())
    assert (spot.vcpu, spot.ram) == (400_000, 400_000)
    assert (spot.disk, spot.snapshot) == (1_000_000, 1_000_000)


def test_a_book_from_before_that_rule_keeps_its_prices() -> None:
    text = book("gpu: {V100: 3/hour}", "disk: 1/month", "spot: 60%")
    (draft,) = read_book(text, name="book", rates=RATES)
    kept = msgspec.json.decode(
        msgspec.json.encode(draft.prices).replace(b',"spot_for_compute":true', b""), type=PriceSheet
    )
    assert not kept.spot_for_compute
    period = Period(version=1, from_us=0, until_us=1, prices=kept)
    assert PricedPeriod(period, "USD").units("V100-SXM2", "spot", PricePlace()).disk == 400_000


def test_storage_cannot_have_a_spot_price() -> None:
    with pytest.raises(BadBook, match="cannot have a spot price"):
        read_book(book("disk: {on-demand: 1/month, spot: 0.5/month}"), name="book", rates=RATES)


def test_images_cost_as_much_as_snapshots_by_default() -> None:
    for line, expected in (("", 3_000_000), ("image: 2/month", 2_000_000)):
        (draft,) = read_book(book("snapshot: 3/month", *filter(None, [line])), name="book", rates=RATES)
        period = Period(version=1, from_us=0, until_us=1, prices=draft.prices)
        assert PricedPeriod(period, "USD").units("", "image", PricePlace()).snapshot == expected


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_hourly_prices_are_rounded_alike_and_egress_has_none(on_demand: int, spot: int) -> None:
    table = PriceTable(gpu={"V100": Unit(on_demand=on_demand, spot=spot)}, egress=on_demand)
    prices = PriceSheet(currency="USD", rates={}, general=table)
    card, egress = prices_answer(Period(version=1, from_us=0, until_us=1, prices=prices)).items
    assert card.on_demand_micros_per_hour == micros_per(on_demand, "hour")
    assert card.spot_micros_per_hour == micros_per(spot, "hour")
    assert (egress.on_demand_micros_per_hour, egress.on_demand_micros_per_month) == (None, on_demand)
