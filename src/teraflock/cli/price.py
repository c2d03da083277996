"""`tera price`: show the prices, and set a price book."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import BadInput
from teraflock.cli.connection import connected
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.table import write_table
from teraflock.words.price import conditions, fields

if TYPE_CHECKING:
    from teraflock.wire.price import PricesAnswer

HELP: Final = """Show the current prices.

\b
Examples:
  tera price
  tera price set prices.yaml
"""


@click.group(cls=NamingGroup, help=HELP, invoke_without_command=True)
@click.pass_context
@json_option
def command(ctx: click.Context, as_json: bool) -> None:
    if ctx.invoked_subcommand is not None:
        return
    with connected() as client:
        prices = client.prices.get()
    if as_json:
        write_json(prices)
    else:
        _write(prices)


@command.command(
    "set", help="Replace the price book with a YAML file. Past usage keeps its prices. For operators."
)
@click.argument("file", type=click.Path())
@json_option
def set_prices(file: str, as_json: bool) -> None:
    text = _read(file)
    with connected() as client:
        taken = client.prices.set(text, name=file).items
    if as_json:
        write_json(taken)
        return
    for period in taken:
        ends = f" to {period.ends_at:%Y-%m-%d %H:%M}" if period.ends_at else ""
        remark(f"Version {period.version} applies from {period.starts_at:%Y-%m-%d %H:%M}{ends} UTC")


def _read(file: str) -> str:
    try:
        with click.open_file(file, encoding="utf-8") as lines:
            return str(lines.read())
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"`{file}` cannot be read: {getattr(error, 'strerror', 'it is not UTF-8 text')}",
            hint="Check its name and permissions",
        ) from None


def _write(prices: "PricesAnswer") -> None:
    write_table(fields(prices.currency), prices.items)
    remark("; ".join(conditions(prices)))
