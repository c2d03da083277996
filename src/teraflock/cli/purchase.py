"""`tera buy`: pay for an instance by the month, or reserve it for years."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.money import amount_text
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected, in_project
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option, yes_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.parse_money import parse_amount
from teraflock.cli.table import write_list
from teraflock.wire.purchase import PurchaseRequest
from teraflock.words.money import years_text
from teraflock.words.purchase import fields, limit_fields

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.purchase import PreviewAnswer, PurchaseAnswer

HELP: Final = """Pay for an instance by the month, or reserve it for one to three years.

\b
Examples:
  tera buy month train
  tera buy reserve train --years 1 --upfront
  tera buy list
  tera buy upgrade PURCHASE
  tera buy end PURCHASE
  tera buy limit ada@lab 500

You see the price and confirm before you buy; `--yes` skips the confirmation.
Owners can buy (permission `purchase.write`). Other members can buy up to a
limit that an owner or the operator sets with `tera buy limit`.
"""
command = NamingGroup("command", help=HELP)


@command.command(help="Buy a month. It renews until you end it.")
@click.argument("instance")
@click.option("--no-renew", is_flag=True, help="Buy one month only.")
@yes_option
@project_option
@json_option
def month(instance: str, no_renew: bool, yes: bool, project: str | None, as_json: bool) -> None:
    _buy(PurchaseRequest(instance=instance, renews=not no_renew), yes, project, as_json)


@command.command(help="Reserve for one to three years at a discount. A reservation cannot be ended early.")
@click.argument("instance")
@click.option("--years", type=click.IntRange(1, 3), default=1, show_default=True, help="The number of years.")
@click.option("--upfront", is_flag=True, help="Pay everything at once, for a lower price.")
@click.option("--no-renew", is_flag=True, help="Do not renew at the end.")
@yes_option
@project_option
@json_option
def reserve(
    instance: str, years: int, upfront: bool, no_renew: bool, yes: bool, project: str | None, as_json: bool
) -> None:
    request = PurchaseRequest(instance=instance, years=years, upfront=upfront, renews=not no_renew)
    _buy(request, yes, project, as_json)


@command.command("list", help="List purchases.")
@in_project
def list_(client: "Client", as_json: bool) -> None:
    found = client.purchases.list()
    write_list(found, fields(found), as_json=as_json, empty="No purchases")


@command.command(
    help="Extend a purchase to the current size of its instance. You pay the difference for the rest of the term."
)
@click.argument("purchase")
@in_project
def upgrade(client: "Client", purchase: str, as_json: bool) -> None:
    _show(client.purchases.upgrade(purchase), as_json)


@command.command(help="End a month early. The price book sets the refund.")
@click.argument("purchase")
@yes_option
@project_option
@json_option
def end(purchase: str, yes: bool, project: str | None, as_json: bool) -> None:
    if not yes:
        confirm(f"End `{purchase}` now? The rest of the month may not be refunded", "Ending a purchase")
    with connected(project) as client:
        _show(client.purchases.end(purchase), as_json)


@command.command(help="Turn automatic renewal on or off.")
@click.argument("purchase")
@click.argument("answer", type=click.Choice(["yes", "no"]))
@in_project
def renew(client: "Client", purchase: str, answer: str, as_json: bool) -> None:
    _show(client.purchases.set_renewal(purchase, answer == "yes"), as_json)


@command.command(help="Let a member buy up to AMOUNT a month. `none` removes the limit. For owners.")
@click.argument("member")
@click.argument("amount")
@project_option
@json_option
def limit(member: str, amount: str, project: str | None, as_json: bool) -> None:
    micros = None if amount == "none" else parse_amount(amount)
    with connected(project) as client:
        client.purchases.set_limit(member, micros)
    if as_json:
        write_json({"member": member, "micros": micros})
    elif micros is None:
        remark(f"{member}: no purchase limit")
    else:
        remark(f"{member} can buy for up to {amount} a month")


@command.command(help="Show the purchase limits of members.")
@in_project
def limits(client: "Client", as_json: bool) -> None:
    found = client.purchases.limits()
    empty = "No purchase limits: owners can buy, other members cannot"
    write_list(found, limit_fields(found), as_json=as_json, empty=empty)


def _buy(request: PurchaseRequest, yes: bool, project: str | None, as_json: bool) -> None:
    with connected(project) as client:
        price = client.purchases.preview(request)
        if not yes:
            _confirm(request, price)
        _show(client.purchases.buy(request), as_json)


def _confirm(request: PurchaseRequest, price: "PreviewAnswer") -> None:
    """Show the price and ask for confirmation."""
    fee = amount_text(price.fee_micros, price.currency)
    until = f"{price.paid_until:%Y-%m-%d}"
    if not request.years:
        then = "then renewed each month at current prices" if request.renews else "then it ends"
        question = f"Buy a month of `{request.instance}` for {fee}, paid until {until}, {then}?"
        confirm(question, f"A purchase of {fee}")
        return
    total = amount_text(price.committed_micros, price.currency)
    rate = f"{fee} at once" if request.upfront else f"in monthly instalments of {fee}, {total} in total"
    years = years_text(request.years)
    question = f"Reserve `{request.instance}` for {years}, {rate}? It cannot be ended early"
    confirm(question, f"A purchase of {fee if request.upfront else total}")


def _show(purchase: "PurchaseAnswer", as_json: bool) -> None:
    if as_json:
        write_json(purchase)
        return
    last = purchase.terms[-1]
    amount = amount_text(abs(last.fee_micros), purchase.currency)
    what = "refunded" if last.fee_micros < 0 else "charged"
    remark(
        f"{purchase.id}: {last.kind}, {amount} {what}; paid until {purchase.paid_until:%Y-%m-%d %H:%M} UTC"
    )
