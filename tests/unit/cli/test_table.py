"""Tables line up and fit the terminal, whatever they contain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.cli.chart import Range, ranges
from teraflock.cli.table import Column, display_width, dropped, printable, render, shortened, write_rows

HEAD = [
    Column("NAME"),
    Column("PRICE", right=True),
    Column("PLACE", flexible=True, worth=7),
    Column("NOTE", flexible=True, worth=3),
    Column("NEVER", worth=5),
]


def test_numbers_align_right_and_text_left() -> None:
    rows = [["a", "1.50", "here", "", ""], ["longer", "1,200.00", "there and here", "x", ""]]
    assert render(HEAD, rows, 80) == (
        "NAME       PRICE  PLACE           NOTE\n"
        "a           1.50  here\n"
        "longer  1,200.00  there and here  x"
    )  # fmt: skip


def test_empty_columns_are_left_out() -> None:
    assert "NEVER" not in render(HEAD, [["a", "1", "b", "c", ""]], 80)
    assert render(HEAD, [], 80) == "NAME  PRICE"


def test_dropped_columns_are_named() -> None:
    rows = [["name", "1,200.00", "a place with a name", "a long note about it", ""]]
    assert dropped(HEAD, rows, 80) == []
    assert dropped(HEAD, rows, 34) == ["NOTE"]
    assert dropped(HEAD, rows, 14) == ["PLACE", "NOTE"]


def test_every_table_names_the_columns_it_dropped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["name", "1,200.00", "a place with a name", "a long note about it", ""]]
    monkeypatch.setenv("COLUMNS", "34")
    write_rows(HEAD, rows)
    out, err = capsys.readouterr()
    assert "NOTE" not in out
    assert err == "Columns not shown: NOTE. Use a wider terminal, or `--json`\n"
    monkeypatch.setenv("COLUMNS", "80")
    write_rows(HEAD, rows)
    assert capsys.readouterr().err == ""


def test_columns_of_least_worth_are_dropped_first() -> None:
    rows = [["name", "1,200.00", "a place with a name", "a long note about it", "n"]]
    assert "NOTE" in render(HEAD, rows, 80)
    narrow = render(HEAD, rows, 34)
    assert "NOTE" not in narrow
    assert "a place" in narrow
    assert "…" in narrow
    narrower = render(HEAD, rows, 14)
    assert narrower.splitlines() == ["NAME     PRICE", "name  1,200.00"]


def test_wide_characters_count_as_two() -> None:
    lines = render([Column("NAME"), Column("N", right=True)], [["北京", "1"], ["abcd", "2"]], 80).splitlines()
    assert lines[1:] == ["北京  1", "abcd  2"]
    assert display_width("北京a") == 5
    assert shortened("北京北京", 6) == "北京…"
    assert display_width(shortened("北京北京", 6)) <= 6


TEXTS = st.text(alphabet="ab 北é\n\x1b", max_size=30)


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=5), st.integers(20, 120))
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, str, str]], width: int) -> None:
    head = [Column("A", flexible=True), Column("B", flexible=True, worth=4), Column("C", worth=3)]
    lines = render(head, rows, width).split("\n")
    assert len(lines) == len(rows) + 1
    assert all(display_width(line) <= width for line in lines)


@given(st.text(max_size=40), st.integers(1, 20))
def test_shortened_text_fits_and_keeps_its_start(text: str, width: int) -> None:
    short = shortened(text, width)
    assert display_width(short) <= max(width, 1)
    assert short == text or text.startswith(short.removesuffix("…").rstrip())


def test_cells_have_no_line_breaks_or_escapes() -> None:
    assert printable("a\nb\x1b[1mc") == "a b [1mc"
    assert printable("é北京 –") == "é北京 –"


def test_a_chart_draws_every_moment_on_one_scale() -> None:
    rows = [
        Range(
            label="2019", low=800, middle=1200, high=3000, low_text="0.8", high_text="3.0", note="4 offers"
        ),
        Range(
            label="2022-07", low=3000, middle=3000, high=3000, low_text="3.0", high_text="3.0", note="1 offer"
        ),
    ]
    first, second = ranges(rows, 60).splitlines()
    assert len(first) <= 60
    assert first.index("├") < first.index("●") < first.index("┤")
    assert second.index("●") == first.index("┤")  # equal prices are in the same column
    assert "├" not in second


@pytest.mark.parametrize("width", [10, 40, 80, 400])
@given(values=st.lists(st.integers(0, 10**9), min_size=3, max_size=3))
def test_a_chart_can_be_drawn_of_any_prices(width: int, values: list[int]) -> None:
    low, middle, high = sorted(values)
    row = Range(label="2019", low=low, middle=middle, high=high, low_text="a", high_text="b", note="n")
    assert ranges([row], width).count("●") == 1
