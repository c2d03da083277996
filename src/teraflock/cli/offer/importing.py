"""`tera offers import`: import a catalog and report what happened to every row."""

from pathlib import Path
from typing import Final

import click

from teraflock.app.local import Local
from teraflock.base.clock import today
from teraflock.base.errors import BadInput
from teraflock.base.quantities import count_text
from teraflock.cli.output import remark, write_json
from teraflock.cli.progress import ProgressLine
from teraflock.offer.dates import file_dates, given_dates
from teraflock.offer.importers import READERS
from teraflock.offer.imports import SHIPPED, import_offers
from teraflock.offer.tally import Origin, Reason, Report

HELP: Final = """Import a catalog: replace all offers of SOURCE with those in PATH.

SOURCE is a name of your choice. The names `skypilot` and `gpuhunt` read the catalogs of those projects. Any other name
reads Teraflock's CSV layout (docs/offers-csv.md), unless you set `--layout`. Old prices are kept as history. A file
that cannot be read completely changes nothing, nor does one that would remove most offers of a large SOURCE.

Every price has the date of its row, the one you give with `--as-of`, or that of the last commit of
the file if PATH is in a git repository. Otherwise the date is unknown.

\b
Examples:
  tera offers import skypilot ~/skypilot-catalog/catalogs/v8
  tera offers import skypilot catalogs/ --as-of 2026-08-22 --as-of azure=2025-09-10
  tera offers import gpuhunt ~/gpuhunt/aws.csv --as-of 2026-08-22
  tera offers import our-servers prices.csv
"""
UNKNOWN_GPUS_SHOWN: Final = 8


@click.command(help=HELP)
@click.argument("source")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--layout", type=click.Choice(list(READERS)), help="Layout of the files.")
@click.option(
    "--as-of",
    multiple=True,
    metavar="[NAME=]DATE",
    help="Date of the prices, of all files or of the file or folder NAME.  [default: last commit of each file]",
)
@click.option("--yes", is_flag=True, help="Import even if that removes most offers of SOURCE.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def command(
    source: str, path: Path, layout: str | None, as_of: tuple[str, ...], yes: bool, as_json: bool
) -> None:
    check_source(source)
    with Local() as local:
        latest = today(local.clock)
        day_of = file_dates(given_dates(as_of, latest), latest)
        origin = Origin(source=source, layout=layout or layout_of(source), path=path, day_of=day_of)
        with ProgressLine("Reading", "rows") as progress:
            report = import_offers(
                local.database(to_write=True),
                local.rates,
                local.clock,
                origin,
                progress=progress,
                may_remove_most=yes,
            )
    print_report(report, as_json=as_json)


def check_source(source: str) -> None:
    if source == SHIPPED:
        raise BadInput(
            f"The source name `{SHIPPED}` is reserved for the offers shipped with Teraflock",
            hint="Choose another name",
        )
    if not source or not all(character.isalnum() or character in "-_." for character in source):
        raise BadInput(f"`{source}` is not a valid source name", hint="Use letters, digits, `-`, `_` and `.`")


def layout_of(source: str) -> str:
    return source if source in READERS else "teraflock"


def print_report(report: Report, *, as_json: bool) -> None:
    if as_json:
        write_json(report)
        return
    click.echo(f"{report.source}: {_dates(report)}")
    figures = [
        ("rows read; a row can have two prices", report.rows_read),
        ("prices imported, each as an offer", report.offers_taken),
        ("  with a price", report.priced),
        ("  price unknown", report.price_unknown),
        ("  price refused", sum(reason.rows for reason in report.refused)),
        ("  price far from that of other providers", report.far_prices),
        ("rows or single prices rejected", sum(reason.rows for reason in report.rejected)),
        ("new offers", report.new),
        ("changed prices", report.changed),
        ("removed offers", report.gone),
    ]
    width = max(len(f"{figure:,}") for _, figure in figures)
    for words, figure in figures:
        click.echo(f"  {figure:{width},}  {words}")
    _print_reasons("Implausible prices, refused (`tera offers --all` lists them)", report.refused)
    _print_reasons("Rejected", report.rejected)
    if report.date_unknown:
        unknown = count_text(report.date_unknown, "price")
        remark(f"\nThe date of {unknown} is unknown; give it with `--as-of DATE`")
    if report.unknown_gpus:
        names = ", ".join(f"{name} ({count:,})" for name, count in report.unknown_gpus[:UNKNOWN_GPUS_SHOWN])
        remark(f"\nUnknown GPU models, imported without memory and speed: {names}")


def _dates(report: Report) -> str:
    if not report.as_of:
        return "prices of unknown date"
    return f"prices from {report.as_of}" + (
        f", the oldest from {report.oldest}" if report.oldest != report.as_of else ""
    )


def _print_reasons(title: str, reasons: tuple[Reason, ...]) -> None:
    if reasons:
        remark(f"\n{title}:")
        for reason in reasons:
            more = ", …" if reason.rows > len(reason.examples) else ""
            remark(f"  {reason.rows:,}: {reason.reason} ({'; '.join(reason.examples)}{more})")
