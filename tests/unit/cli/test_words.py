"""Progress, footers and the width of the output."""

from datetime import date
from fractions import Fraction

import pytest
from tests.unit.offer.random_offers import ON, RATES

from teraflock.catalog.cards import all_slices
from teraflock.catalog.model import CardSlice
from teraflock.cli.offer.footer import age, footer
from teraflock.cli.output import columns, emphasised, gpus_text
from teraflock.cli.progress import ProgressLine
from teraflock.offer.model import Listing, Offer, OfferLine

TODAY = date(2026, 11, 15)
OFFER = Offer(
    source="s", provider="aws", kind="gpu", standing="priced", currency="CNY", price_micros_per_month=1
)


@pytest.mark.parametrize(
    ("day", "words"),
    [
        ("2026-11-15", "today"),
        ("2026-11-14", "1 day old"),
        ("2026-10-01", "45 days old"),
        ("2026-08", "3 months old"),
        ("2025", "22 months old"),
        ("2019-01", "7 years old"),
        ("2027-01-01", "today"),
    ],
)
def test_age_text(day: str, words: str) -> None:
    assert age(day, TODAY) == words


def listing(**more: object) -> Listing:
    usual: dict[str, object] = {
        "matched": 1,
        "newest": "2022-07",
        "oldest": "2019",
        "left_out": (),
        "lines": (),
    }
    return Listing(**usual | more)  # type: ignore[arg-type]


def told(listing: Listing, currency: str = "CNY") -> str:
    return "\n".join(footer(listing, RATES, currency, today=TODAY, on=ON, limit_currency=""))


def test_footer_shows_counts_and_age() -> None:
    text = told(
        listing(
            matched=90,
            lines=(OfferLine(OFFER, ("a", "b"), 2), OfferLine(OFFER, ("c",), 1)),
            left_out=(("with an implausible price", 1200), ("without a GPU", 6)),
        )
    )
    assert "3 of 90 offers in 2 lines" in text
    assert "`--all` shows the rest" in text
    assert "newest from 2022-07 (4 years old), oldest from 2019 (7 years old)" in text
    assert (
        "1,200 with an implausible price (`--all` shows them), 6 without a GPU (`--count 0` shows them)"
        in text
    )
    assert "Exchange" not in text


def test_footer_shows_the_exchange_rate() -> None:
    lines = (OfferLine(OFFER, ("a",), 1),)
    assert "Exchange: 1 USD = 7.189 CNY (2024-01-01" in told(listing(lines=lines), "USD")
    assert "Exchange: 1 CNY = 0.06955 EUR" in told(listing(lines=lines), "EUR")


def test_footer_without_offers_has_no_age() -> None:
    assert told(listing(matched=0, newest="", oldest="")) == ""
    assert "of unknown date" in told(listing(newest="", oldest=""))


@pytest.mark.parametrize(("set_to", "width"), [("60", 60), (None, 200)])
def test_columns_are_honoured(monkeypatch: pytest.MonkeyPatch, set_to: str | None, width: int) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if set_to:
        monkeypatch.setenv("COLUMNS", set_to)
    assert columns() == width


def test_progress_is_shown_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine("Reading", "rows") as progress:
        progress(1000)
    assert capsys.readouterr().err == ""


def test_a_dumb_terminal_gets_no_control_sequences(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    with ProgressLine("Reading", "rows") as progress:
        progress(1000)
    assert capsys.readouterr().err == ""
    assert emphasised("NAME") == "NAME"
    monkeypatch.setenv("TERM", "xterm")
    assert emphasised("NAME") != "NAME"


def test_progress_is_redrawn_and_cleared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with ProgressLine("Fetching", "bytes") as progress:
        progress(50, 200)
        progress(60, 200)  # too soon to draw again
        progress(200, 200)
    drawn = capsys.readouterr().err
    assert " 25 % of 200 bytes" in drawn
    assert " 30 %" not in drawn
    assert "100 % of 200 bytes" in drawn
    assert "\n" not in drawn
    assert drawn.endswith("\r\x1b[K")


@pytest.mark.parametrize("part", all_slices(), ids=lambda part: f"{part.family} {part.profile} {part.form}")
def test_a_slice_is_shown_with_its_share(part: CardSlice) -> None:
    shown = gpus_text(1, "A100", part.share)
    share = Fraction(shown.rpartition(" ")[2]) if part.share < 1 else Fraction(1)
    assert float(share) == pytest.approx(part.share, abs=0.001)
    assert gpus_text(2, "L4", 0.001) == "2× L4 1/1000"
