"""The lines after a list of offers: hidden offers with reasons, age of the prices, exchange rates."""

from collections.abc import Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING, Final

from teraflock.base.exchange import Rates
from teraflock.base.quantities import count_text
from teraflock.catalog.retired import retired_on
from teraflock.offer.model import Listing, Offer
from teraflock.offer.rules import first_day

if TYPE_CHECKING:
    from teraflock.wire.offer import OfferShape

UNSURE_PRICE: Final = frozenset(
    {"suspect:price", "unclear:host", "from-price", "inferred:price", "far:price"}
)
UNSURE_GPU: Final = frozenset({"suspect:memory", "inferred:variant", "inferred:gpu", "inferred:count"})
DOUBTFUL: Final = UNSURE_PRICE | UNSURE_GPU | {"suspect:ram"}
RETIRED_SHOWN: Final = 5


def unsure_gpu(offer: "Offer | OfferShape") -> str:
    """The mark of a card or variant that is not certain."""
    return "" if UNSURE_GPU.isdisjoint(offer.flags) else "?"


def footer(
    listing: Listing, rates: Rates, currency: str, *, today: date, on: date, limit_currency: str
) -> Iterator[str]:
    if listing.matched:
        yield f"\n{_shown(listing)}"
        yield f"Prices: {_ages(listing.newest, listing.oldest, today)}"
    if any(flag in DOUBTFUL for line in listing.lines for flag in line.offer.flags):
        yield "`?` marks uncertain values; `--json` shows the reason in `flags` and `note`"
    if retired := _retired(listing):
        yield f"Retired by their provider, and not planned with: {retired}"
    if listing.left_out:
        yield "Not shown: " + ", ".join(_reason(reason, count) for reason, count in listing.left_out)
    yield from exchange_texts((line.offer for line in listing.lines), currency, rates, on, limit_currency)


def left_out_text(retired: int, hint: str) -> str:
    """Say how many offers of retired types a comparison leaves out."""
    return f"Left out: {count_text(retired, 'offer')} of types that their provider has retired; {hint}"


def mode_text(offer: Offer) -> str:
    """The purchase mode, and whether the machine can still be had."""
    retired = retired_on(offer.provider, offer.instance_type)
    return ", ".join([*([offer.mode] if offer.mode else []), *(["retired"] if retired else [])])


def _retired(listing: Listing) -> str:
    """Name the shown types that their providers have retired."""
    offers = (line.offer for line in listing.lines)
    found = dict.fromkeys(
        f"{offer.instance_type} at {offer.provider} ({day})"
        for offer in offers
        if (day := retired_on(offer.provider, offer.instance_type))
    )
    more = f" and {len(found) - RETIRED_SHOWN} more" if len(found) > RETIRED_SHOWN else ""
    return ", ".join(list(found)[:RETIRED_SHOWN]) + more


def _shown(listing: Listing) -> str:
    offers = sum(line.offers for line in listing.lines)
    folded = (
        f" in {len(listing.lines):,} lines; equal offers share a line" if offers > len(listing.lines) else ""
    )
    if offers == listing.matched:
        return f"{offers:,} offer{'s' if offers != 1 else ''}{folded}"
    return f"{offers:,} of {listing.matched:,} offers{folded}; `--all` shows the rest"


def _reason(reason: str, count: int) -> str:
    hints = {
        "with an implausible price": " (`--all` shows them)",
        "without a GPU": " (`--count 0` shows them)",
        "of a part of a GPU": " (`--slices` shows them)",
        "with an outdated price": " (`--all` shows them)",
        "in an unknown country": " (`tera offers regions --unplaced` lists them)",
    }
    return f"{count:,} {reason}{hints.get(reason, '')}"


def _ages(newest: str, oldest: str, today: date) -> str:
    if not newest:
        return "of unknown date"
    if newest == oldest:
        return f"all from {newest} ({age(newest, today)})"
    return f"newest from {newest} ({age(newest, today)}), oldest from {oldest or 'unknown date'}" + (
        f" ({age(oldest, today)})" if oldest else ""
    )


def age(day: str, today: date) -> str:
    """Return the age as text, such as `3 months old`."""
    days = (today - date.fromisoformat(first_day(day))).days
    if days < 1:
        return "today"
    if days < 60:
        return f"{days} day{'s' if days != 1 else ''} old"
    if days < 730:
        return f"{days // 30} months old"
    return f"{days // 365} years old"


def exchange_texts(
    offers: Iterable[Offer], currency: str, rates: Rates, on: date, limit_currency: str = ""
) -> Iterator[str]:
    """The exchange rates with which the prices of these offers are shown and limited."""
    quoted = {offer.currency for offer in offers if offer.price_micros_per_month}
    for other in sorted((quoted | {limit_currency}) - {currency, ""}):
        yield rate_text(other, currency, rates, on)


def rate_text(other: str, currency: str, rates: Rates, on: date) -> str:
    base, quote = (
        ("USD", other) if currency == "USD" else (("USD", currency) if other == "USD" else (other, currency))
    )
    rate = rates.rate(quote if base == "USD" else other, on)
    if base == "USD":
        return f"Exchange: 1 USD = {rate.micros_per_usd / 1e6:g} {quote} ({rate.day}: {rate.source})"
    cross = rates.rate(quote, on).micros_per_usd / rate.micros_per_usd
    return f"Exchange: 1 {base} = {cross:.4g} {quote} (via USD, {rate.day}: {rate.source})"
