"""`tera offers history`: chart the price of a GPU-hour over time."""

from typing import Any, Final

import click

from teraflock.app.local import Local
from teraflock.base.money import decimal_text
from teraflock.cli.chart import Range, ranges
from teraflock.cli.offer.filters import filter_options
from teraflock.cli.output import columns, remark, write_json
from teraflock.offer.service import Point
from teraflock.offer.words import OfferWords, query_from
from teraflock.wire.offer import history_points

HELP: Final = """Show the price of a GPU-hour over time, for all current and past offers that match.

Each line is a day on which prices were first seen, with the lowest, the median (●) and the highest price.

\b
Examples:
  tera offers history --gpu A100 --mode spot
  tera offers history --gpu V100 --provider aws --json
"""


@click.command(help=HELP)
@filter_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def command(as_json: bool, **words: Any) -> None:
    asked = OfferWords(**words)
    with Local() as local:
        service = local.offers()
        currency = local.rates.known(asked.currency)
        points = service.history(query_from(asked, service.providers, service.today()), currency)
    if as_json:
        write_json(history_points(points, currency))
        return
    what = " ".join(asked.gpu) or "all GPUs"
    if not points:
        remark(f"No prices match for {what}")
        return
    click.echo(f"{what}: {currency} per GPU-hour")
    click.echo(ranges([_range(point) for point in points], columns()))
    offers = sum(point.offers for point in points)
    remark(f"\n{offers:,} prices, each on the day it was first seen: lowest, median (●) and highest")


def _range(point: Point) -> Range:
    return Range(
        label=point.day,
        low=point.lowest_micros,
        middle=point.median_micros,
        high=point.highest_micros,
        low_text=decimal_text(point.lowest_micros, 3),
        high_text=decimal_text(point.highest_micros, 3),
        note=f"{point.offers:,} offer{'s' if point.offers != 1 else ''}",
    )
