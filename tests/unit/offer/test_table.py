"""CSV files, valid and broken in every possible way. Broken files give one clear error."""

from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit.offer.catalogs import OWN, imported, own

from teraflock.base.errors import BrokenSource
from teraflock.base.money import MICROS, decimal_text
from teraflock.offer.importers.table import FIELD_CHARACTERS_MAX, amount, number, read_table

IN_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def rows_of(path: Path, *needed: str) -> list[tuple[int, dict[str, str]]]:
    return list(read_table(path, needed))


def written(folder: Path, content: bytes) -> Path:
    file = folder / "prices.csv"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,2\n\n3,4\n",
        b"a,b\r\n1,2\r\n3,4",
        b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
        b'"a","b"\n"1","2"\n"3","4"\n',
        b"b,a\n2,1\n4,3\n",
        b"a,b,,\n1,2,,\n3,4,,\n",
    ],
    ids=["empty lines", "CRLF, no end", "BOM", "quotes", "other order", "unnamed columns"],
)
def test_valid_files_are_read(tmp_path: Path, content: bytes) -> None:
    rows = rows_of(written(tmp_path, content), "a", "b")
    assert [(cells["a"], cells["b"]) for _, cells in rows] == [("1", "2"), ("3", "4")]


def test_line_numbers_match_an_editor(tmp_path: Path) -> None:
    assert [line for line, _ in rows_of(written(tmp_path, b'a\n1\n"2\n2"\n3\n'), "a")] == [2, 4, 5]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "`prices.csv` is empty"),
        (b"\n\n", "`prices.csv` is empty"),
        (b"a,c\n1,2\n", "`prices.csv` has no column `b`"),
        (b"a,b,a\n1,2,3\n", "`prices.csv` has the column `a` twice"),
        (b"a,b\n1,2\n3\n", "`prices.csv`, line 3: expected 2 columns, found 1"),
        (b"a,b\n1,2,3\n", "`prices.csv`, line 2: expected 2 columns, found 3"),
        (b'a,b\n1,"2\n3,4\n', "is not a valid CSV file: unexpected end of data"),
        (b'a,b\n1,"2"x\n', "is not a valid CSV file"),
        (b"a,b\n1,\x00\n", "is not a valid CSV file: it contains a NUL character"),
        (b"a,b\n1,\xe9t\xe9\n", "`prices.csv` is not UTF-8 text"),
        (b"\xff\xfea\x00,\x00b\x00\n\x00", "`prices.csv` is not UTF-8 text"),
        (b'a,b\n1,"' + b"x" * (FIELD_CHARACTERS_MAX + 1), "is not a valid CSV file: field larger"),
        (b"<!DOCTYPE html>\n<html></html>\n", "has no column"),
    ],
    ids=["empty", "blank", "missing column", "column twice", "short row", "long row", "open quote", "stray quote",
         "NUL", "Latin-1", "UTF-16", "endless cell", "a web page"],
)  # fmt: skip
def test_broken_files_are_refused_completely(tmp_path: Path, content: bytes, fault: str) -> None:
    with pytest.raises(BrokenSource) as caught:
        rows_of(written(tmp_path, content), "a", "b")
    assert fault in caught.value.sentence


def test_a_folder_instead_of_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BrokenSource, match="Cannot read .*: Is a directory"):
        rows_of(tmp_path, "a")
    with pytest.raises(BrokenSource, match="Cannot read .*: No such file"):
        rows_of(tmp_path / "nowhere.csv", "a")


@IN_ONE_FOLDER
@given(st.binary(max_size=400) | st.text(alphabet='ab,"\n\r\0é1.', max_size=80).map(str.encode))
@example(b"a\n\r\x00")
@example(b'"\n')
def test_any_bytes_give_rows_or_one_error(tmp_path: Path, content: bytes) -> None:
    try:
        rows = rows_of(written(tmp_path, content))
    except BrokenSource:
        return
    assert all(len(cells) >= 1 for _, cells in rows)


@IN_ONE_FOLDER
@given(st.lists(st.text(alphabet='ab,"\n1.-|ü ', max_size=8), min_size=len(OWN), max_size=len(OWN)))
def test_any_cells_give_offers_or_a_reason(tmp_path: Path, cells: list[str]) -> None:
    file = own(tmp_path / "mine.csv", [dict(zip(OWN, cells, strict=True))])
    result = imported("teraflock", file)
    assert result.rows == 1
    assert result.offers or all(each.reason for each in result.rejected)
    assert len(result.offers) + len(result.rejected) >= 1


@IN_ONE_FOLDER
@given(st.data())
def test_a_truncated_file_is_never_partly_imported(tmp_path: Path, data: st.DataObject) -> None:
    """Except for a cut within the last cell, which only a checksum can detect."""
    rows = [{"region": f"r{i}", "note": 'says "so", twice'} for i in range(4)]
    whole = own(tmp_path / "whole.csv", rows).read_bytes()
    cut = data.draw(st.integers(1, len(whole) - 1))
    part = whole[:cut]
    last_cell = part.count(b"\n") and part.rsplit(b"\n", 1)[1].count(b",") >= len(OWN) - 1
    try:
        read = rows_of(written(tmp_path, part), *OWN)
    except BrokenSource:
        return
    assert part.endswith(b"\n") or last_cell or part.count(b"\n") == 0
    assert len(read) == len(part.splitlines()) - 1


# --- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["x", "nan", "inf", "-inf", "1e16", "1_000", "0x1", "1,5"])
def test_invalid_figures(text: str) -> None:
    with pytest.raises(ValueError):
        number(text)


@pytest.mark.parametrize("text", ["x", "nan", "inf", "-inf", "1e99", "1_000", "0x1", "1,5", "$2", "١"])
def test_invalid_amounts(text: str) -> None:
    with pytest.raises(ValueError):
        amount(text)


def test_an_empty_cell_is_none() -> None:
    assert number("") is None
    assert amount("") is None
    assert number("0.25") == 0.25
    assert number("8.0") == 8


@given(st.decimals(0, 10**9, places=6, allow_nan=False, allow_infinity=False))
def test_a_price_keeps_all_its_digits(price: Decimal) -> None:
    micros = amount(f"{price:f}")
    assert micros is not None
    assert Decimal(micros) == price * MICROS
    assert Decimal(decimal_text(micros, 6).replace(",", "")) == price


@given(st.decimals(0, 10**6, places=9, allow_nan=False, allow_infinity=False))
def test_finer_prices_are_rounded_once_half_to_even(price: Decimal) -> None:
    assert amount(f"{price:f}") == int((price * MICROS).to_integral_value(ROUND_HALF_EVEN))
    assert amount(f"{price:e}") == amount(f"{price:f}")


@IN_ONE_FOLDER
@given(st.decimals("0.5", 10**5, places=6, allow_nan=False, allow_infinity=False), st.integers(1, 8))
def test_a_price_is_imported_with_all_its_digits(tmp_path: Path, price: Decimal, count: int) -> None:
    rows = [{"price": f"{price:f}", "gpu_count": count, "basis": "gpu", "currency": "CNY", "per": "hour"}]
    offer = imported("teraflock", own(tmp_path / "mine.csv", rows)).one
    assert offer.quoted is not None
    assert Decimal(offer.quoted.micros) / MICROS == price
    assert Decimal(offer.price_micros_per_month or 0) == price * MICROS * 730 * count
