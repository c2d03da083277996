"""Regions are placed by the table or by a country in their name; areas include only what is known to be inside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import BadInput, UnknownName
from teraflock.catalog.cards import table
from teraflock.catalog.places import (
    NO_FILTER,
    Area,
    Region,
    all_countries,
    area_from,
    countries_by_code,
    country_from,
    located,
    place_filter,
    places_of,
)
from teraflock.catalog.providers import all_providers


@pytest.mark.parametrize(
    ("provider", "region", "zone", "country"),
    [
        ("lambda", "australia-east-1", "", "AU"),
        ("lambda", "me-west-1", "", "IL"),
        ("aws", "eu-south-2", "eus2-az1", "ES"),
        ("aws", "sa-east-1", "", "BR"),
        ("oci", "il-jerusalem-1", "IL-JERUSALEM-1-AD-1", "IL"),
        ("gcp", "europe-west1", "europe-west1-b", "BE"),
        ("gcp", "europe-west12", "europe-west12-a", "IT"),
        ("azure", "EastUS2", "", "US"),
        ("vast", "Georgia, US, NA", "", "US"),
        ("vast", "CA, NA", "", "CA"),
        ("vast", "Sichuan, CN, AS", "", "CN"),
        ("verda", "FIN-03", "", "FI"),
        ("runpod", "CZ", "EU-CZ-1", "CZ"),
        ("shadeform", "frankfurt-germany-7", "", "DE"),
        ("hyperstack", "NORWAY-1", "", "NO"),
        ("scp", "KOREA_WEST-1-SWN-FIN-B001", "", "KR"),
        ("primeintellect", "FI", "FIN-01", "FI"),
        ("primeintellect", "IS", "me-west-1", "IL"),  # the source takes Israel's zone for Iceland's
        ("nobody", "us-somewhere-9", "", "US"),
        ("tencent", "Beijing", "", "CN"),
    ],
)
def test_regions_are_in_their_country(provider: str, region: str, zone: str, country: str) -> None:
    assert [place.country for place in places_of(provider, region, zone)] == [country]


@pytest.mark.parametrize(
    ("provider", "region"), [("hyperbolic", "default"), ("seeweb", ""), ("yotta", "ap-east-2"), ("x", "me-1")]
)
def test_an_ambiguous_region_is_in_no_country(provider: str, region: str) -> None:
    assert [place.country for place in places_of(provider, region, "")] == [""]


def test_a_zone_does_not_hide_the_city_of_its_region() -> None:
    assert [place.city for place in places_of("aws", "us-east-1", "use1-az1")] == ["Northern Virginia"]


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("EU", "union", "EU"), ("eea", "union", "EEA"), ("europe", "continent", "Europe"),
        ("North America", "continent", "North America"), ("US", "country", "US"), ("usa", "country", "US"),
        ("Germany", "country", "DE"), ("de", "country", "DE"), ("FIN", "country", "FI"), ("uk", "country", "GB"),
        ("us-east-1", "name", "us-east-1"), ("us-", "name", "us-"), ("Frankfurt", "name", "frankfurt"),
    ],
)  # fmt: skip
def test_areas_are_parsed(text: str, kind: str, code: str) -> None:
    assert area_from(text, "region") == Area(kind, code)  # type: ignore[arg-type]


def verdict(
    place: tuple[str, str, str], *regions: str, country: tuple[str, ...] = (), not_in: tuple[str, ...] = ()
) -> str:
    return located(*place, place_filter(regions, country, not_in))


SPAIN = ("aws", "eu-south-2", "eus2-az1")
NOWHERE = ("hyperbolic", "default", "")
OHIO = ("aws", "us-east-2", "use2-az1")
ANYWHERE = ("oci", "US|Germany|UK", "")


def test_a_country_never_matches_as_a_part_of_a_name() -> None:
    assert verdict(SPAIN, "us") == "out"
    assert verdict(("lambda", "australia-east-1", ""), "us") == "out"
    assert verdict(("oci", "il-jerusalem-1", ""), "US") == "out"
    assert verdict(OHIO, "us") == "in"


def test_unions_and_continents_differ() -> None:
    zurich, london, oslo = (
        ("gcp", "europe-west6", ""),
        ("gcp", "europe-west2", ""),
        ("azure", "norwayeast", ""),
    )
    for place in (zurich, london, oslo):
        assert (verdict(place, "europe"), verdict(place, "EU")) == ("in", "out")
    assert (verdict(oslo, "EEA"), verdict(london, "EEA")) == ("in", "out")
    assert verdict(SPAIN, "EU") == "in"


def test_an_unknown_place_is_neither_inside_nor_outside() -> None:
    assert verdict(NOWHERE, "US") == "unknown"
    assert verdict(NOWHERE, not_in=("US",)) == "unknown"
    assert verdict(NOWHERE, "default") == "in"
    assert verdict(NOWHERE, "us-east-1") == "out"
    assert verdict(NOWHERE) == "in"


def test_an_offer_in_several_regions_is_in_each_of_them_and_excluded_by_any() -> None:
    assert verdict(ANYWHERE, "germany") == "in"
    assert verdict(ANYWHERE, not_in=("US",)) == "out"
    assert verdict(ANYWHERE, not_in=("france",)) == "in"


def test_filters_are_combined() -> None:
    assert verdict(SPAIN, "europe", country=("ES", "PT"), not_in=("germany",)) == "in"
    assert verdict(SPAIN, "europe", country=("DE",)) == "out"
    assert verdict(OHIO, "EU", "us-east-2") == "in"


def test_names_match_from_the_start_of_a_word_and_whole_numbers() -> None:
    belgium, berlin = ("gcp", "europe-west1", "europe-west1-b"), ("gcp", "europe-west10", "europe-west10-a")
    assert (verdict(belgium, "europe-west1"), verdict(berlin, "europe-west1")) == ("in", "out")
    assert verdict(belgium, "europe-west1-b") == "in"
    assert verdict(berlin, "berlin") == "in"
    assert verdict(OHIO, "s-east-2") == "out"


def test_bad_places_get_one_sentence() -> None:
    with pytest.raises(BadInput, match="needs a place"):
        area_from("  ", "region")
    with pytest.raises(BadInput, match="needs a place"):
        area_from("x" * 61, "not-in")
    with pytest.raises(UnknownName, match="`Germny`"):
        country_from("Germny")
    with pytest.raises(UnknownName):
        country_from("")


@given(
    provider=st.sampled_from(["aws", "vast", "x"]),
    region=st.text(max_size=12),
    zone=st.text(max_size=6),
    area=st.text(min_size=1, max_size=8).filter(str.strip),
)
def test_inside_and_outside_exclude_each_other(provider: str, region: str, zone: str, area: str) -> None:
    inside = located(provider, region, zone, place_filter((area,), (), ()))
    outside = located(provider, region, zone, place_filter((), (), (area,)))
    assert (inside, outside) in {("in", "out"), ("out", "in"), ("unknown", "unknown")}
    assert located(provider, region, zone, NO_FILTER) == "in"


def test_the_tables_are_consistent() -> None:
    codes = countries_by_code()
    assert len(codes) == len(all_countries()) > 200
    assert sum(country.eu for country in all_countries()) >= 27
    providers = {each.id for each in all_providers()} | {"*"}
    rows = table("regions.csv", Region)
    assert {row.country for row in rows} <= codes.keys()
    assert {row.provider for row in rows} <= providers
    keys = [(row.provider, row.region.casefold()) for row in rows]
    assert len(keys) == len(set(keys))
    names = [name.casefold() for country in all_countries() for name in country.names]
    assert len(names) == len(set(names)), "a name means one country"


def test_the_regions_of_aws_are_those_of_its_sdk() -> None:
    """The SDK describes a region by its city, or by its country alone."""
    from botocore.session import Session

    sdk = Session().get_data("endpoints")["partitions"]
    described = {name: each["description"] for part in sdk[:2] for name, each in part["regions"].items()}
    names = {code: [country.name, *country.names] for code, country in countries_by_code().items()}
    for region, text in described.items():
        (place,) = places_of("aws", region, "")
        assert place.country, f"{region} ({text}) is in no country"
        inside = text.partition("(")[2].removesuffix(")") or text
        known = (place.city, *names[place.country], text.partition(" ")[0])
        expected = (inside, inside.replace("N. ", "Northern "), text.partition(" ")[0])
        assert set(known) & set(expected), f"{region} is {text}, not {place.city}"
