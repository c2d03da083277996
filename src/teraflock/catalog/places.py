"""Places: the country and continent of a provider's region, and areas that users name.

Invariants: a region is placed only by the table (`data/regions.csv`) or because its name contains a country; a region
that cannot be placed is in no country, and no filter by country, continent or union ever includes it. An excluded area
also excludes regions that cannot be placed, because they might be in it.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, Literal

import msgspec

from teraflock.base.errors import BadInput, unknown_name
from teraflock.catalog.cards import table

AREA_CHARACTERS_MAX: Final = 60
EEA_MORE: Final = frozenset({"IS", "LI", "NO"})
"""Members of the European Economic Area that are not in the European Union."""
CODE_CHARACTERS: Final = 2  # shorter words of a region are rarely countries: `sa-east-1` is in Brazil


class Country(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    """ISO 3166-1 code of two letters."""
    code3: str
    name: str
    continent: str
    eu: bool
    """Whether it belongs to the European Union."""
    aliases: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.code, self.code3, self.name, *(alias for alias in self.aliases.split("|") if alias))


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table. `*` at the end of `region` stands for any ending; provider `*` is any provider."""

    provider: str
    region: str
    city: str = ""
    country: str


class RegionPlace(msgspec.Struct, frozen=True):
    """Where a region is. `country` is empty if that is unknown."""

    country: str = ""
    city: str = ""


class Area(msgspec.Struct, frozen=True):
    """An area that a user names."""

    kind: Literal["continent", "union", "country", "name"]
    """`name` means a part of the name of a region, zone or city."""
    code: str


class PlaceFilter(msgspec.Struct, frozen=True):
    """Keeps offers that are in one of `regions`, in one of `countries`, and in none of `not_in`."""

    regions: tuple[Area, ...] = ()
    countries: tuple[Area, ...] = ()
    not_in: tuple[Area, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.regions or self.countries or self.not_in)


NO_FILTER: Final = PlaceFilter()


@cache
def all_countries() -> tuple[Country, ...]:
    return table("countries.csv", Country)


@cache
def countries_by_code() -> Mapping[str, Country]:
    return {country.code: country for country in all_countries()}


@cache
def _countries_by_key() -> Mapping[str, Country]:
    return {_key_of(name): country for country in all_countries() for name in country.names}


# --- where a region is ---------------------------------------------------------------------------------------------


_Rows = tuple[dict[str, Region], list[tuple[str, Region]]]
_NO_ROWS: Final[_Rows] = ({}, [])


@lru_cache(maxsize=1 << 14)
def places_of(provider: str, region: str, zone: str) -> tuple[RegionPlace, ...]:
    """Return the place of each region of an offer. Regions are separated by `|`."""
    return tuple(_place_of(provider, part.strip(), zone) for part in region.split("|"))


def _place_of(provider: str, region: str, zone: str) -> RegionPlace:
    exact, _ = _regions().get(provider, _NO_ROWS)
    # A row for a region with its zone corrects the source.
    row = exact.get(f"{region} {zone}".casefold()) or _row_of(provider, region)
    if row is None and (found := _country_in(region)):
        return RegionPlace(found.code)
    row = row or _row_of(provider, zone)
    return RegionPlace(row.country, row.city) if row else RegionPlace()


def _row_of(provider: str, text: str) -> Region | None:
    name = text.strip().casefold()
    exact, prefixes = _regions().get(provider, _NO_ROWS)
    if name in exact:
        return exact[name]
    if not name:
        return None
    _, general = _regions()["*"]
    for start, row in prefixes:
        if name.startswith(start):
            return row
    return next((row for start, row in general if name.startswith(start)), None)


@cache
def _regions() -> Mapping[str, _Rows]:
    """Return the rows of each provider: exact names, and prefixes with the longest first."""
    found: dict[str, _Rows] = {}
    for row in table("regions.csv", Region):
        exact, prefixes = found.setdefault(row.provider, ({}, []))
        name = row.region.casefold()
        if name.endswith("*"):
            prefixes.append((name[:-1], row))
        else:
            exact[name] = row
    for _, prefixes in found.values():
        prefixes.sort(key=lambda each: -len(each[0]))
    return found


def _country_in(region: str) -> Country | None:
    """Find the country that a region names: `Sichuan, CN, AS`, `FI`, `frankfurt-germany-7` or `NORWAY-1`."""
    by_key = _countries_by_key()
    parts = [part.strip() for part in region.split(",")]
    if len(parts) > 1:  # the last part is the continent, and the one before it the country
        return by_key.get(_key_of(parts[-2]))
    if whole := by_key.get(_key_of(region)):
        return whole
    words = [word for word in re.split(r"[-_ ]", region) if len(word) > CODE_CHARACTERS]
    return next((by_key[_key_of(word)] for word in words if _key_of(word) in by_key), None)


# --- areas ---------------------------------------------------------------------------------------------------------

_CONTINENTS: Final = {
    "africa": "Africa", "asia": "Asia", "europe": "Europe", "northamerica": "North America", "oceania": "Oceania",
    "southamerica": "South America",
}  # fmt: skip
_UNIONS: Final = {"eu": "EU", "europeanunion": "EU", "eea": "EEA"}


def area_from(text: str, option: str) -> Area:
    """Parse an area: a continent, `EU`, `EEA`, a country, or a part of the name of a region."""
    stripped = text.strip()
    if not stripped or len(stripped) > AREA_CHARACTERS_MAX:
        raise BadInput(
            f"`--{option}` needs a place",
            hint="Give a region, a country such as `DE`, or `EU`, `europe`, `US`",
        )
    key = _key_of(stripped)
    exact = stripped[-1].isalnum()  # `us-` is the start of a name, not a country
    if exact and key in _CONTINENTS:
        return Area("continent", _CONTINENTS[key])
    if exact and key in _UNIONS:
        return Area("union", _UNIONS[key])
    if exact and key in _countries_by_key():
        return Area("country", _countries_by_key()[key].code)
    return Area("name", stripped.casefold())


def country_from(text: str) -> Area:
    found = _countries_by_key().get(_key_of(text))
    if found is None or not text.strip():
        names = [name for country in all_countries() for name in country.names]
        raise unknown_name("country", text, names, see="Use a name or an ISO code, such as `Germany` or `DE`")
    return Area("country", found.code)


def place_filter(regions: Sequence[str], countries: Sequence[str], not_in: Sequence[str]) -> PlaceFilter:
    return PlaceFilter(
        tuple(area_from(text, "region") for text in regions),
        tuple(country_from(text) for text in countries),
        tuple(area_from(text, "not-in") for text in not_in),
    )


Verdict = Literal["in", "out", "unknown"]


@lru_cache(maxsize=1 << 14)  # one question asks for each place several times
def located(provider: str, region: str, zone: str, wanted: PlaceFilter) -> Verdict:
    """Return whether an offer passes the filter, or that its place is not known well enough to tell."""
    places = places_of(provider, region, zone)
    unknown = False
    for areas in (wanted.regions, wanted.countries):
        if not areas:
            continue
        found = [_lies_in(area, places, region, zone) for area in areas]
        if True in found:
            continue
        if None not in found:
            return "out"
        unknown = True
    for area in wanted.not_in:
        inside = _lies_in(area, places, region, zone)
        if inside:
            return "out"
        unknown = unknown or inside is None
    return "unknown" if unknown else "in"


def _lies_in(area: Area, places: Sequence[RegionPlace], region: str, zone: str) -> bool | None:
    """Return whether any of the places lies in the area. None if none is known to, and one is unknown."""
    if area.kind == "name":
        pattern = _pattern(area.code)
        names = f"{region} {zone}".casefold()
        return bool(pattern.search(names)) or any(pattern.search(place.city.casefold()) for place in places)
    if any(_contains(area, place.country) for place in places):
        return True
    return None if any(not place.country for place in places) else False


@lru_cache(maxsize=256)
def _pattern(name: str) -> re.Pattern[str]:
    """Match a name at the start of a word: `us-east-1` matches zone `us-east-1a`, but not `us-east-10`."""
    start = r"(?<![a-z0-9])" if name[0].isascii() and name[0].isalnum() else ""
    end = r"(?![0-9])" if name[-1].isdigit() else ""
    return re.compile(start + re.escape(name) + end)


def _contains(area: Area, code: str) -> bool:
    country = countries_by_code().get(code)
    if country is None:
        return False
    if area.kind == "country":
        return country.code == area.code
    if area.kind == "union":
        return country.eu or (area.code == "EEA" and country.code in EEA_MORE)
    return country.continent == area.code


def _key_of(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
