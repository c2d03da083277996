"""`tera rates`: the exchange rates in use, and the way to put others in place."""

from pathlib import Path
from typing import Final

import click

from teraflock.app.files import put
from teraflock.app.home import RATES_NAME
from teraflock.app.local import SHIPPED_RATES, Local, filled_up, load_rates
from teraflock.base.errors import Refused, TeraflockError
from teraflock.base.exchange import Rates
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.table import Column, render
from teraflock.wire.rate import shape_rate

HELP: Final = """Exchange rates: a dated table, by which prices in several currencies are compared.

For a day the newest rate not after it counts. `tera rates import FILE.csv` puts your own table in place of the
shipped one; its columns are date, currency, per_usd, source. Currencies it does not name keep their shipped rates.
`tera rates reset` goes back to the shipped table.
"""


@click.group(invoke_without_command=True, help=HELP)
@click.option("--json", "as_json", is_flag=True, help="A JSON list of objects on stdout.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    if ctx.invoked_subcommand:
        return
    with Local() as local:
        rates, place = local.rates.rows(), local.rates_path
        shipped = place == SHIPPED_RATES
    if as_json:
        write_json([shape_rate(rate) for rate in rates])
        return
    head = [
        Column("CURRENCY"),
        Column("FROM"),
        Column("PER USD", right=True),
        Column("SOURCE", flexible=True, worth=5),
    ]
    rows = [[rate.currency, str(rate.day), f"{rate.micros_per_usd / 1e6:.6g}", rate.source] for rate in rates]
    click.echo(render(head, rows, columns()))
    remark("\nThese rates come with Teraflock" if shipped else f"\nThese rates are yours: {place}")


@command.command(
    "import", help="Put the table in FILE in place of the shipped rates. Refused as a whole or taken."
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_rates(file: Path) -> None:
    rates = filled_up(load_rates(str(file)))
    with Local() as local:
        _check_none_is_lost(local, rates)
        put(Path(local.home, RATES_NAME), file.read_bytes())
    remark(f"{len(rates.rows())} rates for {', '.join(rates.currencies())} are in place")


@command.command("reset", help="Go back to the rates that come with Teraflock.")
def reset() -> None:
    with Local() as local:
        _check_none_is_lost(local, load_rates(SHIPPED_RATES))
        Path(local.home, RATES_NAME).unlink(missing_ok=True)
    remark("The rates that come with Teraflock are in place")


def _check_none_is_lost(local: Local, rates: Rates) -> None:
    """Offers in a currency without a rate could not be compared with others, and would vanish from every list."""
    lost = sorted(currency for currency in _currencies_in_use(local) if not rates.knows(currency))
    if lost:
        raise Refused(
            f"Offers in {', '.join(lost)} are stored, and these rates have none for it",
            hint=f"Import a table that has a rate for {', '.join(lost)}",
        )


def _currencies_in_use(local: Local) -> set[str]:
    try:
        return {currency for source in local.offers().sources() for currency in source.currencies.split()}
    except TeraflockError:
        return set()  # a broken table or database must not keep a new table out
