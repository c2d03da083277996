"""`Local`: reading works with every home, and failed writes explain why."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from teraflock.app.home import home
from teraflock.app.local import SHIPPED_RATES, Local, filled_up, load_rates
from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, StorageFailed, UnknownName
from teraflock.base.exchange import read_rates
from teraflock.offer.model import Query

CLOCK = FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC))
HEADER = "date,currency,per_usd,source\n"


def test_the_home_is_tera_home_or_the_platform_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TERA_HOME", str(tmp_path))
    assert home() == str(tmp_path)
    monkeypatch.setenv("TERA_HOME", "~/mine")
    assert home() == str(Path.home() / "mine")
    monkeypatch.delenv("TERA_HOME")
    for platform, variable, expected in (
        ("linux", "XDG_DATA_HOME", tmp_path / "teraflock"),
        ("win32", "LOCALAPPDATA", tmp_path / "teraflock"),
        ("darwin", "HOME", tmp_path / "Library" / "Application Support" / "teraflock"),
    ):
        monkeypatch.setattr("sys.platform", platform)
        monkeypatch.setenv(variable, str(tmp_path))
        assert home() == str(expected)


@pytest.fixture(params=["a file", "too long a name", "below a file"])
def impossible(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that nobody can create, not even root."""
    (tmp_path / "file").write_text("mine")
    place = {
        "a file": tmp_path / "file",
        "too long a name": tmp_path / ("n" * 300),
        "below a file": tmp_path / "file" / "home",
    }[request.param]
    monkeypatch.setenv("TERA_HOME", str(place))
    return place


def test_without_a_home_the_shipped_offers_are_read_from_memory(impossible: Path) -> None:
    with Local(CLOCK) as local:
        assert local.offers().search(Query(), limit=None).matched == 135
        assert local.rates_path == SHIPPED_RATES


def test_an_in_memory_database_for_reading_is_never_written(impossible: Path) -> None:
    with Local(CLOCK) as local:
        local.offers()
        with pytest.raises(StorageFailed) as refused:
            local.database(to_write=True)
    assert str(impossible) in refused.value.sentence
    assert "TERA_HOME" in refused.value.hint
    with Local(CLOCK) as local, pytest.raises(StorageFailed):
        local.database(to_write=True)


def test_own_rates_take_precedence_over_shipped_ones() -> None:
    own = read_rates([HEADER, "2020-01-01,CNY,10,mine\n"], name="mine")
    rates = filled_up(own)
    shipped = load_rates(SHIPPED_RATES)
    assert rates.currencies() == shipped.currencies()
    assert {rate.source for rate in rates.rows() if rate.currency == "CNY"} == {"mine"}
    assert rates.rate("EUR", date(2024, 6, 1)) == shipped.rate("EUR", date(2024, 6, 1))


def test_currency_codes_are_case_insensitive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TERA_HOME", str(tmp_path))
    with Local(CLOCK) as local:
        assert local.rates.known("cny") == "CNY"
        with pytest.raises(UnknownName, match="Unknown currency `yuan`"):
            local.rates.known("yuan")


def test_rates_with_a_byte_order_mark_are_read_and_latin_1_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_bytes(b"\xef\xbb\xbf" + HEADER.encode() + b"2020-01-01,CNY,10,mine\n")
    assert load_rates(str(file)).knows("CNY")
    file.write_bytes(HEADER.encode() + b"2020-01-01,CNY,10,caf\xe9\n")
    with pytest.raises(BadInput, match="not a CSV file in UTF-8"):
        load_rates(str(file))
