"""`tera buy`: months and years of an instance, paid ahead."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.cli.bill.words import amount_text
from teraflock.cli.cloud.asking import confirm
from teraflock.cli.cloud.connection import connected
from teraflock.cli.cloud.options import json_option, project_option, yes_option
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.table import Column, render
from teraflock.wire.bill import PurchaseRequest

if TYPE_CHECKING:
    from teraflock.wire.bill import PurchaseAnswer

HELP: Final = """Pay for what an instance holds by the month, or reserve it for years.

\b
Examples:
  tera buy month train
  tera buy reserve train --years 1 --upfront
  tera buy list
  tera buy upgrade PURCHASE
  tera buy end PURCHASE
"""
COLUMNS: Final = (
    Column("ID"),
    Column("MODE"),
    Column("INSTANCE", worth=7),
    Column("A MONTH", right=True),
    Column("PAID UNTIL"),
    Column("THEN", worth=6),
)


@click.group(cls=NamingGroup, help=HELP)
def command() -> None:
    pass


@command.command(help="By the month, renewed until it is ended.")
@click.argument("instance")
@click.option("--no-renew", is_flag=True, help="One month only.")
@project_option
@json_option
def month(instance: str, no_renew: bool, project: str | None, as_json: bool) -> None:
    _buy(PurchaseRequest(instance=instance, renews=not no_renew), project, as_json)


@command.command(help="For one to three years, at a discount; cannot be ended early.")
@click.argument("instance")
@click.option("--years", type=click.IntRange(1, 3), default=1, show_default=True)
@click.option("--upfront", is_flag=True, help="All of it at once, for less.")
@click.option("--no-renew", is_flag=True)
@yes_option
@project_option
@json_option
def reserve(
    instance: str, years: int, upfront: bool, no_renew: bool, yes: bool, project: str | None, as_json: bool
) -> None:
    if not yes:
        confirm(f"Reserve `{instance}` for {years} years? It cannot be ended early", "A reservation")
    request = PurchaseRequest(instance=instance, years=years, upfront=upfront, renews=not no_renew)
    _buy(request, project, as_json)


@command.command("list", help="What was bought.")
@project_option
@json_option
def list_(project: str | None, as_json: bool) -> None:
    with connected(project) as client:
        found = client.purchases().items
    if as_json:
        write_json(found)
    elif found:
        click.echo(render(COLUMNS, [_cells(each) for each in found], columns()))
    else:
        remark("Nothing is bought ahead")


@command.command(help="Let it grow to what its instance holds now; the rest of the term is paid pro rata.")
@click.argument("purchase")
@project_option
@json_option
def upgrade(purchase: str, project: str | None, as_json: bool) -> None:
    with connected(project) as client:
        _say(client.upgrade_purchase(purchase), as_json)


@command.command(help="End a month early; the price book says what is given back.")
@click.argument("purchase")
@yes_option
@project_option
@json_option
def end(purchase: str, yes: bool, project: str | None, as_json: bool) -> None:
    if not yes:
        confirm(f"End `{purchase}` now? What is left may be lost", "Ending a purchase")
    with connected(project) as client:
        _say(client.end_purchase(purchase), as_json)


@command.command(help="Let it go on by itself, or run out.")
@click.argument("purchase")
@click.argument("answer", type=click.Choice(["yes", "no"]))
@project_option
@json_option
def renew(purchase: str, answer: str, project: str | None, as_json: bool) -> None:
    with connected(project) as client:
        _say(client.set_renewal(purchase, answer == "yes"), as_json)


def _buy(request: PurchaseRequest, project: str | None, as_json: bool) -> None:
    with connected(project) as client:
        _say(client.buy(request), as_json)


def _say(purchase: "PurchaseAnswer", as_json: bool) -> None:
    if as_json:
        write_json(purchase)
        return
    last = purchase.terms[-1]
    amount = amount_text(abs(last.fee_micros), purchase.currency)
    what = "given back" if last.fee_micros < 0 else "charged"
    remark(
        f"{purchase.id}: {last.kind}, {amount} {what}; paid until {purchase.paid_until:%Y-%m-%d %H:%M} UTC"
    )


def _cells(purchase: "PurchaseAnswer") -> list[str]:
    mode = f"{purchase.years} years" if purchase.years else "monthly"
    then = "ended" if purchase.ended else "renewed" if purchase.renews else "runs out"
    month_micros = max(term.month_micros for term in purchase.terms)
    return [
        purchase.id, mode, purchase.instance_id, amount_text(month_micros, purchase.currency),
        f"{purchase.paid_until:%Y-%m-%d %H:%M}", then,
    ]  # fmt: skip
