"""Ids, errors, clock, quantities and exchange rates."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.clock import FixedClock, SystemClock, today
from teraflock.base.errors import BadInput, TeraflockError, nearest_names, unknown_name
from teraflock.base.exchange import read_rates
from teraflock.base.ids import new_id
from teraflock.base.quantities import GIB, MIB, bytes_text, count_text, memory_text, parse_memory_bytes

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.binary(min_size=5, max_size=5)), min_size=2, max_size=20))
def test_ids_sort_by_time_and_differ(moments: list[tuple[int, bytes]]) -> None:
    def made_at(milliseconds: int, random: bytes) -> str:
        return new_id("inst", NOON + timedelta(milliseconds=milliseconds), lambda _: random)

    made = [(milliseconds, random, made_at(milliseconds, random)) for milliseconds, random in moments]
    assert [id for _, _, id in sorted(made)] == sorted(id for _, _, id in made)
    assert len({id for _, _, id in made}) == len({(m, r) for m, r, _ in made})
    assert all(len(id) == len("inst_") + 16 for _, _, id in made)


def test_an_unknown_name_suggests_similar_names() -> None:
    error = unknown_name("GPU", "V1000", ["V100", "P100", "A100", "T4"], see="`tera gpus` lists them all")
    assert error.exit_code == 2
    assert error.sentence == "Unknown GPU `V1000`"
    assert error.hint.startswith("Did you mean `V100`")
    assert error.hint.endswith("`tera gpus` lists them all")


def test_hint_lists_a_few_names_of_which_none_is_similar() -> None:
    assert nearest_names("zzzz", ["V100", "P100"]) == []
    assert unknown_name("GPU", "zzzz", iter(["V100", "P100"])).hint == "Known: `P100`, `V100`"
    assert unknown_name("GPU", "zzzz", ["V100"], see="Read on").hint == "Read on"
    assert unknown_name("GPU", "zzzz", []).hint == ""
    assert unknown_name("GPU", "zzzz", [f"card-{number}" for number in range(1000)]).hint == ""


def test_private_context_is_not_in_the_sentence() -> None:
    error = TeraflockError("It failed", context={"project": "p1"})
    assert str(error) == "It failed"
    assert error.context == {"project": "p1"}


def test_codes_are_unique() -> None:
    def leaves(kind: type[TeraflockError]) -> list[type[TeraflockError]]:
        return [kind, *(leaf for each in kind.__subclasses__() for leaf in leaves(each))]

    ours = [kind for kind in leaves(TeraflockError) if kind.__module__.startswith("teraflock.")]
    heard = "teraflock.client.errors"  # repeats the codes of the server's errors
    codes = [kind.code for kind in ours if "code" in vars(kind) and kind.__module__ != heard]
    assert len(codes) == len(set(codes)), sorted(code for code in codes if codes.count(code) > 1)


def test_a_fixed_clock_changes_only_when_moved() -> None:
    clock = FixedClock(NOON)
    assert clock.now() == clock.now() == NOON
    clock.move(timedelta(days=1))
    assert today(clock) == date(2026, 11, 16)
    with pytest.raises(ValueError, match="zone"):
        FixedClock(datetime(2026, 1, 1))  # noqa: DTZ001
    assert SystemClock().now().tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("48", 48 * GIB),
        ("48GB", 48 * GIB),
        ("48 GiB", 48 * GIB),
        ("0.5t", 512 * GIB),
        ("512MB", GIB // 2),
        ("11.5g", 11.5 * GIB),
    ],
)
def test_memory_sizes_are_parsed(text: str, size: float) -> None:
    assert parse_memory_bytes(text) == size


@pytest.mark.parametrize("text", ["", "-1", "x", "1e9", "48kb", "48 gigs", "9" * 12, "1.2.3"])
def test_invalid_memory_sizes_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="not an amount of memory"):
        parse_memory_bytes(text)


@given(st.integers(1, 10**6))
def test_whole_gigabytes_have_no_decimals(gigabytes: int) -> None:
    assert memory_text(gigabytes * GIB) == f"{gigabytes:,} GB"
    assert memory_text(GIB * 3 // 2) == "1.5 GB"


def test_the_newest_rate_up_to_the_day_is_used() -> None:
    rates = read_rates(
        ["date,currency,per_usd,source\n", "2019-01-01,CNY,6.91,a\n", "2024-01-01,CNY,7.189,b\n"],
        name="rates.csv",
    )
    assert rates.rate("CNY", date(2020, 5, 1)).source == "a"
    assert rates.rate("CNY", date(2024, 1, 1)).source == "b"
    assert rates.rate("CNY", date(2001, 1, 1)).source == "a"
    assert rates.currencies() == ("CNY", "USD")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("2024-01-01,CNY,0,x", "above zero"),
        ("2024-01-01,CNY,-7,x", "above zero"),
        ("2024-13-01,CNY,7,x", "not a valid date and rate"),
        ("2024-01-01,CNY,seven,x", "not a valid date and rate"),
        ("2024-01-01,yuan,7,x", "not a currency code"),
        ("2024-01-01,A'B,7,x", "not a currency code"),
        ("2024-01-01,USD,2,x", "the rate of USD must be 1"),
        ("2024-01-01,CNY,7", "4 columns"),
    ],
)
def test_a_bad_line_refuses_the_whole_table(line: str, fault: str) -> None:
    with pytest.raises(BadInput, match=fault) as refused:
        read_rates(["date,currency,per_usd,source\n", line], name="rates.csv")
    assert "line 2" in refused.value.sentence


def test_a_table_of_something_else_is_refused() -> None:
    with pytest.raises(BadInput, match="not a table of exchange rates"):
        read_rates(["a,b\n"], name="rates.csv")


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (64 << 10, "64 KB"),
        (50 * MIB, "50 MB"),
        (256 * MIB, "256 MB"),
        (GIB, "1 GB"),
        (3 * GIB // 2, "1.5 GB"),
        (12 * GIB + MIB, "12 GB"),
        (767 * GIB + 300 * MIB, "767 GB"),
        (2 << 40, "2 TB"),
    ],
)
def test_sizes_use_a_fitting_unit(size_bytes: int, text: str) -> None:
    assert bytes_text(size_bytes) == text


@given(st.integers(1, 1 << 55))
def test_formatted_sizes_are_exact_to_five_percent(size_bytes: int) -> None:
    number, unit = bytes_text(size_bytes).split()
    units = {"B": 1, "KB": 1 << 10, "MB": MIB, "GB": GIB, "TB": 1 << 40}
    assert abs(float(number) * units[unit] - size_bytes) <= size_bytes / 20


def test_counts_use_the_singular_for_one() -> None:
    assert [count_text(n, "instance") for n in (0, 1, 2, 1200)] == [
        "0 instances",
        "1 instance",
        "2 instances",
        "1,200 instances",
    ]
