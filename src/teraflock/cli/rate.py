"""`tera rates`: list, import and reset exchange rates."""

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

HELP: Final = """List the exchange rates that compare prices in different currencies.

Each day uses the newest rate up to that day. `tera rates import FILE.csv` replaces the shipped rates with your own; the
columns are date, currency, per_usd and source. Currencies that the file does not name keep their shipped rates.
`tera rates reset` restores the shipped rates.
"""


@click.group(invoke_without_command=True, help=HELP)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
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
    remark("\nThese rates are shipped with Teraflock" if shipped else f"\nThese rates are imported: {place}")


@command.command(
    "import", help="Replace the shipped rates with those in FILE. A faulty file changes nothing."
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_rates(file: Path) -> None:
    rates = filled_up(load_rates(str(file)))
    with Local() as local:
        _check_none_is_lost(local, rates)
        put(Path(local.home, RATES_NAME), file.read_bytes())
    remark(f"Imported {len(rates.rows())} rates for {', '.join(rates.currencies())}")


@command.command("reset", help="Restore the shipped rates.")
def reset() -> None:
    with Local() as local:
        _check_none_is_lost(local, load_rates(SHIPPED_RATES))
        Path(local.home, RATES_NAME).unlink(missing_ok=True)
    remark("Restored the shipped rates")


def _check_none_is_lost(local: Local, rates: Rates) -> None:
    """Refuse rates without a currency that stored offers use: those offers would disappear from every list."""
    lost = sorted(currency for currency in _currencies_in_use(local) if not rates.knows(currency))
    if lost:
        raise Refused(
            f"The file has no rate for {', '.join(lost)}, which stored offers use",
            hint=f"Add a rate for {', '.join(lost)} to the file",
        )


def _currencies_in_use(local: Local) -> set[str]:
    try:
        return {currency for source in local.offers().sources() for currency in source.currencies.split()}
    except TeraflockError:
        return set()  # a broken rates file or database must not prevent importing a new one
