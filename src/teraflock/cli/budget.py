"""`tera budget`: show and set a project's monthly budget."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.money import amount_text
from teraflock.cli.connection import connected, in_project
from teraflock.cli.instance.costs import tell_budget
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.parse_money import parse_amount
from teraflock.cli.table import Column, write_rows
from teraflock.wire.budget import BudgetRequest, CapRequest
from teraflock.words.money import hourly_text
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.budget import BudgetAnswer

HELP: Final = """Show a project's budget for the month.

An event is recorded when a level is reached. With `--hard-stop`, all instances are stopped before the budget is
exceeded, after a notice.

\b
Examples:
  tera budget
  tera budget set 500 --levels 50,80,95 --hard-stop
  tera budget remove
  tera budget cap 300 --project red-lab:default   # for operators

If there is both a budget and an operator's cap, the lower one applies.
"""
COLUMNS: Final = (Column("BUDGET"), Column("VALUE"))


@click.group(cls=NamingGroup, help=HELP, invoke_without_command=True)
@click.pass_context
@project_option
@json_option
def command(ctx: click.Context, project: str | None, as_json: bool) -> None:
    if ctx.invoked_subcommand is None:
        with connected(project) as client:
            _write(client.budgets.get(), as_json)


@command.command("set", help="Set the monthly budget, in the project's currency.")
@click.argument("amount")
@click.option(
    "--levels",
    default="50,80,100",
    show_default=True,
    metavar="PERCENTS",
    help="Percentages that record an event when they are reached.",
)
@click.option("--hard-stop", is_flag=True, help="Stop all instances before it is exceeded.")
@click.option("--notice", type=click.IntRange(0, 168), default=1, show_default=True, metavar="HOURS",
              help="How long before the hard stop to announce it.")  # fmt: skip
@project_option
@json_option
def set_budget(
    amount: str, levels: str, hard_stop: bool, notice: int, project: str | None, as_json: bool
) -> None:
    request = BudgetRequest(
        micros=parse_amount(amount), levels=_levels(levels), hard_stop=hard_stop, notice_seconds=notice * 3600
    )
    with connected(project) as client:
        _write(client.budgets.set(request), as_json)


@command.command(help="Remove the project's budget. The operator's cap stays.")
@in_project
def remove(client: "Client", as_json: bool) -> None:
    client.budgets.remove()
    tell({"micros": None}, "Removed the budget", as_json)


@command.command(
    help="Cap what a project spends in a month. Its instances are stopped at the cap. `none` removes it. For operators."
)
@click.argument("amount")
@click.option("--notice", type=click.IntRange(0, 168), default=1, show_default=True, metavar="HOURS",
              help="How long before the stop to announce it.")  # fmt: skip
@project_option
@json_option
def cap(amount: str, notice: int, project: str | None, as_json: bool) -> None:
    request = None
    if amount != "none":
        request = CapRequest(micros=parse_amount(amount), notice_seconds=notice * 3600)
    with connected(project) as client:
        standing = client.budgets.set_cap(request)
    if as_json:
        write_json({"cap_micros": request.micros if request else None})
    elif request is None or standing is None:
        remark("Removed the cap")
    else:
        remark(f"Capped at {amount_text(request.micros, standing.currency)} a month")


def _levels(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdigit() and 1 <= int(word) <= 1000 for word in words):
        raise BadInput(f"`--levels {text}` is not a list of percentages", hint="Write it as `50,80,100`")
    return tuple(sorted({int(word) for word in words}))


def _level_text(level: int, reached: tuple[int, ...]) -> str:
    return f"{level} % (reached)" if level in reached else f"{level} %"


def _source(budget: "BudgetAnswer") -> str:
    """The project's own budget, if the operator's cap applies instead."""
    if budget.cap_micros is None or budget.micros != budget.cap_micros:
        return ""
    own = "none" if budget.own_micros is None else amount_text(budget.own_micros, budget.currency)
    return f" (the operator's cap; own budget: {own})"


def _write(budget: "BudgetAnswer", as_json: bool) -> None:
    if as_json:
        write_json(budget)
        return
    money = budget.currency
    share = f" ({100 * budget.spent_micros // budget.micros} %)" if budget.micros else ""
    rows = [
        [f"budget for {budget.month}", amount_text(budget.micros, money) + _source(budget)],
        ["spent", amount_text(budget.spent_micros, money) + share],
        ["price now", hourly_text(budget.micros_per_hour, money)],
        ["levels", ", ".join(_level_text(level, budget.levels_reached) for level in budget.levels)],
        ["when spent", "all instances are stopped" if budget.hard_stop else "new launches are refused"],
    ]
    if budget.cap_micros is not None:
        rows.insert(1, ["operator's cap", amount_text(budget.cap_micros, money) + ", set by the operator"])
    if budget.stops_at and not budget.is_spent:
        rows.append(["spent at", f"{time_text(budget.stops_at)}, if nothing changes"])
    write_rows(COLUMNS, rows)
    tell_budget(budget)
    if budget.is_spent:
        remark("The budget is spent: you cannot launch instances this month")
