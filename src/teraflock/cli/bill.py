"""`tera bill`: show, verify and export the bill of a month."""

import sys
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.base.money import amount_text, decimals_for
from teraflock.base.quantities import count_text
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.parse_money import month_option
from teraflock.cli.table import Column, write_list, write_rows
from teraflock.words.bill import line_fields
from teraflock.words.money import amount_column

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.bill import BillAnswer, MarginRowAnswer

HELP: Final = """Show what a project was charged in a month.

\b
Examples:
  tera bill
  tera bill --month 2026-10 --by user
  tera bill --by label --label team
  tera bill lines
  tera bill verify
  tera bill margin --by host
  tera bill export --focus > october.csv
"""
GROUPS: Final = (
    Column("NAME", flexible=True),
    Column("LINES", right=True, worth=5),
    Column("AMOUNT", right=True),
)


MARGIN: Final = (
    Column("NAME", flexible=True),
    Column("REVENUE", right=True),
    Column("COST", right=True),
    Column("IDLE", right=True, worth=6),
    Column("MARGIN", right=True),
)


class UnsoundBooks(TeraflockError):
    """`tera bill verify` found a difference between the charges and the events."""

    code = "unsound_books"
    remedy = "Look at the differences that the command lists."


@click.group(cls=NamingGroup, help=HELP, invoke_without_command=True)
@click.pass_context
@month_option
@click.option(
    "--by",
    type=click.Choice(["gpu", "user", "instance", "label", "day"]),
    default="gpu",
    show_default=True,
    help="How to group the charges.",
)
@click.option(
    "--label", default="", metavar="KEY", help="With `--by label`: the label. [default: all labels]"
)
@click.option("--margin", "is_margin", is_flag=True, help="For operators: the same as `tera bill margin`.")
@project_option
@json_option
def command(
    ctx: click.Context, month: str, by: str, label: str, is_margin: bool, project: str | None, as_json: bool
) -> None:
    if ctx.invoked_subcommand is not None:
        return
    if is_margin:
        ctx.invoke(margin, month=month, as_json=as_json)
        return
    with connected(project) as client:
        bill = client.bills.get(month=month, by=by, label=label)
        mark_simulated(client)
    if as_json:
        write_json(bill)
    else:
        _write(bill)


@command.command(help="List every charge of a month.")
@month_option
@in_project
def lines(client: "Client", month: str, as_json: bool) -> None:
    found = client.bills.lines(month=month)
    empty = "No charges yet. Usage is charged when it ends, or at the end of the day"
    write_list(found, line_fields(found), as_json=as_json, empty=empty)


@command.command(help="Recompute every charge from the events and compare. For operators.")
@json_option
def verify(as_json: bool) -> None:
    with connected() as client:
        verdict = client.bills.verify()
    if as_json:
        write_json(verdict)
    for fault in () if as_json else verdict.faults:
        click.echo(f"{fault.where}: {fault.what}")
    if not verdict.sound:
        count = len(verdict.faults) + verdict.faults_beyond
        raise UnsoundBooks(
            f"{count} differences between charges and events",
            hint="Compare the rows listed above with a backup",
        )
    if not as_json:
        charges, things = count_text(verdict.charges, "charge"), count_text(verdict.instances, "instance")
        remark(f"Verified {charges} of {things}: all match the events exactly")


@command.command()
@month_option
@click.option(
    "--by",
    type=click.Choice(["organisation", "project", "instance", "host"]),
    default="project",
    show_default=True,
)
@json_option
def margin(month: str, by: str, as_json: bool) -> None:
    """Show revenue, cost and margin of a month, over all tenants. For operators.

    Revenue is what was charged, before credits and tax. Cost is what the hosts cost: set with `tera host cost` or
    reported by the provider. IDLE is the part of the cost that served nobody. Amounts are converted by the rates of the
    price book of each day; an amount without a rate is shown in its own currency.

    \b
    Examples:
      tera bill margin
      tera bill margin --month 2026-10 --by host
    """
    with connected() as client:
        found = client.bills.margin(month=month, by=by)
        mark_simulated(client)
    if as_json:
        write_json(found)
    elif found.rows:
        write_rows(MARGIN, _margin_cells([*found.rows, *found.totals]))
        if found.hosts_without_cost:
            hosts = count_text(found.hosts_without_cost, "host")
            remark(f"The cost of {hosts} with revenue is not known; `tera host cost set` records one")
    else:
        remark(f"{found.month}: no revenue and no cost; `tera host cost set` records what a host costs")


@command.command(help="Export a month as CSV with the columns of FinOps FOCUS 1.2.")
@click.option("--focus", is_flag=True, help="The FOCUS 1.2 format (required).")
@month_option
@project_option
def export(focus: bool, month: str, project: str | None) -> None:
    if not focus:
        raise BadInput("Choose a format", hint="Add `--focus`")
    with connected(project) as client:
        sys.stdout.buffer.writelines(client.bills.focus(month=month))


def _write(bill: "BillAnswer") -> None:
    named = [(group.name, str(group.lines), group.micros) for group in bill.groups]
    if bill.unbooked_micros:
        named.append(("usage not charged yet", "", bill.unbooked_micros))
    named.append((f"{bill.month} total", str(bill.lines), bill.micros + bill.unbooked_micros))
    amounts = amount_column([micros for _, _, micros in named], bill.currency)
    rows = [[name, lines, amount] for (name, lines, _), amount in zip(named, amounts, strict=True)]
    write_rows(GROUPS, rows)
    saved = bill.list_micros - bill.micros
    if saved > 0:
        remark(f"You saved {amount_text(saved, bill.currency)} compared with on-demand prices")


def _margin_cells(rows: list["MarginRowAnswer"]) -> list[list[str]]:
    amounts = [(row.revenue_micros, row.cost_micros, row.idle_micros, row.margin_micros) for row in rows]
    decimals = decimals_for(micros for each in amounts for micros in each)
    return [
        [row.name, *(amount_text(micros, row.currency, decimals) for micros in each)]
        for row, each in zip(rows, amounts, strict=True)
    ]
