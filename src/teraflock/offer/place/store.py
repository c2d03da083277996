"""All SQL about places. The counts of offers name every place, so filters by country read few rows."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from teraflock.base.errors import BadInput
from teraflock.catalog.places import PlaceFilter, located
from teraflock.offer.rules import place_parts
from teraflock.storage.database import Transaction

PLACES_MAX: Final = 10_000  # the largest known catalog has 500; databases limit the parameters of a statement


class PlacesFound(NamedTuple):
    """The keys of the places that pass a filter, and of those that might, but whose country is not known."""

    inside: list[str]
    unknown: list[str]


class PlaceCount(NamedTuple):
    provider: str
    region: str
    zone: str
    offers: int


def places(tx: Transaction, wanted: PlaceFilter, *, ever: bool = False) -> PlacesFound:
    """Find the places that pass a filter. `ever` includes the places of past offers."""
    sql = "SELECT DISTINCT place FROM offer_count"
    if ever:
        sql += " UNION SELECT place FROM offer_past"
    found = PlacesFound([], [])
    for (key,) in tx.all(sql):
        verdict = located(*place_parts(key), wanted)
        if verdict != "out":
            keys = found.inside if verdict == "in" else found.unknown
            keys.append(key)
    if max(map(len, found)) > PLACES_MAX:
        raise BadInput(
            f"More than {PLACES_MAX:,} places match", hint="Name a country or a region, such as `--region DE`"
        )
    return found


def in_places(name: str, keys: Sequence[str]) -> tuple[str, dict[str, object]]:
    """Return the condition that an offer is at one of these places, and its values."""
    values: dict[str, object] = {f"{name}_{i}": key for i, key in enumerate(keys)}
    among = ", ".join(f":{key}" for key in values)
    return (f"place IN ({among})" if values else "1 = 0"), values


def place_counts(tx: Transaction) -> list[PlaceCount]:
    """Return all places of current offers, with the number of offers."""
    rows = tx.all("SELECT place, CAST(SUM(offers) AS BIGINT) FROM offer_count GROUP BY place ORDER BY place")
    return [PlaceCount(*place_parts(key), offers) for key, offers in rows]
