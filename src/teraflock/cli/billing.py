"""`tera billing`: show and set how a project pays, and record payments."""

from typing import TYPE_CHECKING, Any, Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.money import MICROS, parse_micros
from teraflock.cli.connection import connected, in_project
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import write_json
from teraflock.cli.parse_money import checked_month, parse_amount
from teraflock.cli.table import Column, write_rows
from teraflock.wire.billing import ProfileShape
from teraflock.words.money import amount_column

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.billing import ProfileAnswer

HELP: Final = """Show how a project pays: by invoice at the end of the month, or in advance.

\b
Examples:
  tera billing
  tera billing set --currency EUR --tax VAT=19
  tera billing set --prepaid
  tera billing pay 500
"""
COLUMNS: Final = (Column("BILLING"), Column("VALUE"))


@click.group(cls=NamingGroup, help=HELP, invoke_without_command=True)
@click.pass_context
@project_option
@json_option
def command(ctx: click.Context, project: str | None, as_json: bool) -> None:
    if ctx.invoked_subcommand is None:
        with connected(project) as client:
            _write(client.billing.get(), as_json)


@command.command(
    "set", help="Set how a project pays. Options that you leave out keep their value. For operators."
)
@click.option("--currency", metavar="CODE", help="The currency. It cannot change after the first charge.")
@click.option("--prepaid/--invoice", "prepaid", default=None, help="Pay in advance, or by invoice.")
@click.option("--tax", metavar="NAME=PERCENT", help="The tax. [default: the tax in the price book]")
@click.option("--customer", metavar="TEXT", help="Name and address on invoices.")
@click.option("--tax-number", metavar="TEXT", help="The customer's tax number on invoices.")
@in_project
def set_billing(client: "Client", as_json: bool, **words: Any) -> None:
    before = client.billing.get()
    name, points = _tax(words["tax"]) if words["tax"] else (before.tax_name, before.tax_basis_points)
    pays = {True: "prepaid", False: "invoice", None: before.pays}[words["prepaid"]]
    shape = ProfileShape(
        currency=(words["currency"] or before.currency).upper(),
        pays=pays,  # type: ignore[arg-type]
        tax_name=name,
        tax_basis_points=points,
        customer=before.customer if words["customer"] is None else words["customer"].replace("\\n", "\n"),
        tax_number=before.tax_number if words["tax_number"] is None else words["tax_number"],
    )
    _write(client.billing.set(shape), as_json)


@command.command(help="Record a payment: in advance, or for an invoice. For operators.")
@click.argument("amount")
@click.option(
    "--month",
    default="",
    metavar="YYYY-MM",
    callback=checked_month,
    help="The month of the invoice that is paid.",
)
@in_project
def pay(client: "Client", amount: str, month: str, as_json: bool) -> None:
    _write(client.billing.pay(parse_amount(amount, at_least=1), month=month), as_json)


def _tax(text: str) -> tuple[str, int]:
    name, is_pair, percent = text.partition("=")
    try:
        points = parse_micros(percent.rstrip("%")) * 100 // MICROS
    except ValueError:
        points = -1
    if not is_pair or not name or not 0 <= points <= 10_000:
        raise BadInput(f"`--tax {text}` is not a tax", hint="Write it as `VAT=19`")
    return name, points


def _amounts(profile: "ProfileAnswer") -> list[list[str]]:
    """Names and amounts, all with the same number of decimals. Prepaid projects also have an available amount."""
    named = [
        ("balance (paid in advance)", profile.balance_micros),
        ("owed", profile.owed_micros),
        ("pending (not booked yet)", profile.pending_micros),
    ]
    if profile.pays == "prepaid":
        named.append(("available (with credits)", profile.available_micros))
    texts = amount_column([micros for _, micros in named], profile.currency)
    return [[name, text] for (name, _), text in zip(named, texts, strict=True)]


def _write(profile: "ProfileAnswer", as_json: bool) -> None:
    if as_json:
        write_json(profile)
        return
    rows = [
        ["pays", "in advance" if profile.pays == "prepaid" else "by invoice"],
        ["currency", profile.currency],
        *_amounts(profile),
    ]
    if profile.tax_number:
        rows.append(["tax number", profile.tax_number])
    if profile.tax_name:
        rows.append([profile.tax_name, f"{profile.tax_basis_points / 100:g} %"])
    write_rows(COLUMNS, rows)
