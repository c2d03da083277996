"""`tera offers regions`: list the regions of offers, with their country and continent."""

from typing import Any, Final

import click

from teraflock.app.local import Local
from teraflock.base.quantities import count_text
from teraflock.catalog.places import RegionPlace, countries_by_code, places_of
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.table import Column, render
from teraflock.offer.place.store import PlaceCount
from teraflock.offer.words import parse_provider

HELP: Final = """List the regions of all stored offers, with city, country and continent.

`--region`, `--country` and `--not-in` use this table. Regions whose country is unknown are in no country: `--region US`
and `--not-in US` both leave them out.

\b
Examples:
  tera offers regions --provider aws
  tera offers regions --unplaced
"""


@click.command(help=HELP)
@click.option("--provider", metavar="NAME", help="Only this provider.")
@click.option("--unplaced", is_flag=True, help="Only regions whose country is unknown.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def command(provider: str | None, unplaced: bool, as_json: bool) -> None:
    with Local() as local:
        service = local.offers()
        wanted = parse_provider(provider, service.providers) if provider else None
        found = _by_region(service.places())
    rows = [
        _row(name, region, place, offers)
        for (name, region, place), offers in found.items()
        if wanted in (None, name) and not (unplaced and place.country)
    ]
    if as_json:
        write_json(rows)
        return
    head = [
        Column("PROVIDER"),
        Column("REGION", flexible=True),
        Column("CITY", flexible=True, worth=5),
        Column("COUNTRY"),
        Column("CONTINENT", worth=6),
        Column("OFFERS", right=True, worth=7),
    ]
    cells = [
        [row["provider"], row["region"] or "(none)", row["city"], row["country"] or "unknown", row["continent"],
         f"{row['offers']:,}"]
        for row in rows
    ]  # fmt: skip
    click.echo(render(head, cells, columns()))
    missing = sum(row["offers"] for row in rows if not row["country"])
    remark(f"\n{count_text(len(rows), 'region')}; the country of {count_text(missing, 'offer')} is unknown")


def _by_region(counts: list[PlaceCount]) -> dict[tuple[str, str, RegionPlace], int]:
    """Add up the offers of all zones of a region. A row with several regions counts for each of them."""
    found: dict[tuple[str, str, RegionPlace], int] = {}
    for each in counts:
        parts = zip(each.region.split("|"), places_of(each.provider, each.region, each.zone), strict=True)
        for region, place in parts:
            key = (each.provider, region, place)
            found[key] = found.get(key, 0) + each.offers
    return found


def _row(provider: str, region: str, place: RegionPlace, offers: int) -> dict[str, Any]:
    country = countries_by_code().get(place.country)
    return {
        "provider": provider,
        "region": region,
        "city": place.city,
        "country": place.country,
        "country_name": country.name if country else "",
        "continent": country.continent if country else "",
        "eu": country.eu if country else None,
        "offers": offers,
    }
