"""Parsing the filters of a query."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput, TeraflockError, UnknownName
from teraflock.base.quantities import GIB
from teraflock.offer.dates import day_of_prices
from teraflock.offer.model import PriceLimit, Query
from teraflock.offer.rules import LARGEST_STORED, is_part
from teraflock.offer.words import OfferWords, parse_day, query_from


def question(**words: Any) -> Query:
    return query_from(OfferWords(**words), lambda: ["our-cloud"], date(2026, 11, 15))


@pytest.mark.parametrize(
    ("text", "least", "most"), [("4", 4, 4), ("2-8", 2, 8), ("4+", 4, None), (" 1 ", 1, 1), ("0", 0, 0)]
)
def test_counts(text: str, least: int, most: int | None) -> None:
    query = question(count=text)
    assert (query.count_min, query.count_max) == (least, most)
    assert query.kinds == (("none",) if text == "0" else ("gpu", "other", "unstated"))


@pytest.mark.parametrize(
    "text", ["", "-", "-4", "4-", "+", "4+8", "a", "1.5", "٤", "8-2", "9" * 10, "1-" + "9" * 10]
)
def test_invalid_counts(text: str) -> None:
    with pytest.raises(BadInput):
        question(count=text)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2022-12-31", date(2022, 12, 31)),
        ("2022-12", date(2022, 12, 31)),
        ("2022-02", date(2022, 2, 28)),
        ("2024-02", date(2024, 2, 29)),
        ("2022", date(2022, 12, 31)),
    ],
)
def test_days(text: str, day: date) -> None:
    assert parse_day(text) == day


@pytest.mark.parametrize(
    "text",
    ["", "22", "2022-00", "2022-13", "2022-02-30", "2022-1-1-1", "0000", "٢٠٢٢", "9999-12-32", "2022-"],
)
def test_invalid_days(text: str) -> None:
    with pytest.raises(BadInput, match="is not a date"):
        parse_day(text)


@given(st.dates(date(1, 1, 1), date(9999, 11, 30)))
def test_a_month_means_its_last_day(day: date) -> None:
    last = parse_day(f"{day.year:04}-{day.month:02}")
    assert (last.year, last.month) == (day.year, day.month)
    assert last >= day
    assert date.fromordinal(last.toordinal() + 1).day == 1


def test_the_date_of_prices_is_never_in_the_future() -> None:
    today = date(2026, 11, 15)
    assert day_of_prices("2026", today) == today
    assert day_of_prices("2026-11", today) == today
    assert day_of_prices("2026-10", today) == date(2026, 10, 31)
    assert day_of_prices("2026-11-15", today) == today
    for text in ("2026-11-16", "2026-12", "2027"):
        with pytest.raises(BadInput, match="in the future"):
            day_of_prices(text, today)


def test_memory_and_prices() -> None:
    query = question(
        memory_min="40",
        memory_total_min="48GB",
        ram_min="512MB",
        price_max="2.5",
        currency="cny",
        per="month",
    )
    assert (query.memory_bytes_min, query.memory_total_bytes_min) == (40 * GIB, 48 * GIB)
    assert query.ram_bytes_min == GIB // 2
    assert query.price_max == PriceLimit(2_500_000, "CNY", "month")


def test_huge_memory_fits_the_database() -> None:
    query = question(memory_min="999999999TB", memory_total_min="999999999TB", ram_min="999999999TB")
    assert {query.memory_bytes_min, query.memory_total_bytes_min, query.ram_bytes_min} == {LARGEST_STORED}


def test_names_become_ids() -> None:
    query = question(gpu=("V100 32G", "v100", "TPU v4"), provider=("Oracle", "oci", "Our-Cloud"))
    assert query.gpus[:2] == ("V100-SXM2-32", "V100-PCIe-32")
    assert set(query.gpus) == {"V100-SXM2", "V100-SXM2-32", "V100-PCIe", "V100-PCIe-32", "TPU-v4"}
    assert len(query.gpus) == 5
    assert query.providers == ("oci", "our-cloud")


def test_an_imported_provider_is_suggested() -> None:
    with pytest.raises(UnknownName) as caught:
        question(provider=("our-clod",))
    assert "`our-cloud`" in caught.value.hint


WORDS = st.text(max_size=12)


@given(
    count=WORDS,
    memory_min=WORDS,
    price_max=WORDS,
    as_of=WORDS,
    gpu=st.tuples(WORDS),
    provider=st.tuples(WORDS),
)
def test_any_words_give_a_query_or_bad_input(**words: Any) -> None:
    assert {exit_code(**{name: word}) for name, word in words.items()} <= {0, 2}


def exit_code(**words: Any) -> int:
    try:
        question(**words)
    except TeraflockError as error:
        return error.exit_code
    return 0


def test_slice_finds_only_parts_of_its_size() -> None:
    found = question(gpu=("A100 1g.10gb",))
    assert found.slices
    assert {(round(7 * each.share), each.memory_bytes) for each in found.parts} == {(1, 10 << 30)}
    seventh = 0.1429
    assert is_part(seventh, 10 << 30, found.parts)
    assert is_part(
        seventh, (80 << 30) // 7, found.parts
    )  # as lists that multiply the memory by the share say it
    assert not is_part(seventh, 5 << 30, found.parts)  # a 1g.5gb of an A100 with 40 GB has the same share
    assert not is_part(seventh, 20 << 30, found.parts)
    assert not is_part(seventh, None, found.parts)
    assert question(gpu=("A100",)).parts == ()
    with pytest.raises(BadInput, match="both whole GPUs and slices"):
        question(gpu=("A100 1g.10gb", "T4"))
