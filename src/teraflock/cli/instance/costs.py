"""Prices and costs that `tera ps`, `launch` and `stop` show. Without a price book, nothing is shown."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from teraflock.base.errors import TeraflockError
from teraflock.base.money import amount_text
from teraflock.cli.confirm import confirm
from teraflock.cli.output import remark
from teraflock.cli.parse_money import parse_amount
from teraflock.words.bill import idle_text
from teraflock.words.budget import end_text
from teraflock.words.money import hourly_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.bill import CostAnswer
    from teraflock.wire.budget import BudgetAnswer
    from teraflock.wire.instance import InstanceAnswer, LaunchRequest

ASK_ABOVE: Final = "TERA_ASK_ABOVE"
ASK_ABOVE_DEFAULT: Final = "20"  # per hour, in the project's currency: about eight large GPUs


def costs_by_id(client: "Client") -> Mapping[str, "CostAnswer"]:
    """What each instance costs. Empty if the user may not see it, or if nothing costs anything."""
    try:
        found = {each.instance_id: each for each in client.bills.costs()}
    except TeraflockError:
        return {}
    told = (
        each.micros or each.micros_per_hour or each.idle_gpus or each.paid_until for each in found.values()
    )
    return found if any(told) else {}


def with_cost(instance: "InstanceAnswer", costs: Mapping[str, "CostAnswer"]) -> dict[str, Any]:
    """The fields of an instance with its cost, for JSON. The cost is null if there is none."""
    cost = costs.get(instance.id)
    told = (
        {"currency": cost.currency, "micros_per_hour": cost.micros_per_hour, "micros": cost.micros}
        if cost
        else None
    )
    return {**msgspec.to_builtins(instance), "cost": told}


def tell_idle(costs: Iterable["CostAnswer"], now: datetime) -> None:
    """Report idle GPUs and what they cost."""
    for cost in costs:
        if sentence := idle_text(cost, now):
            remark(sentence)


def budget_of(client: "Client") -> "BudgetAnswer | None":
    """The project's budget. None if there is none, or if the user may not see it."""
    try:
        return client.budgets.get()
    except TeraflockError:
        return None


def tell_budget(budget: "BudgetAnswer") -> None:
    """Warn if the budget will stop instances, or has stopped them."""
    if sentence := end_text(budget):
        remark(sentence)


def price_of(client: "Client", request: "LaunchRequest", *, yes: bool) -> str:
    """A sentence with the price of a launch, to show once it is accepted. Asks first if the price is high."""
    from teraflock.wire.quote import QuoteRequest

    try:
        quote = client.quotes.get(
            QuoteRequest(
                shape=request.shape,
                mode=request.mode,
                instances=request.instances,
                host=request.host or "",
                site=request.site,
                type=request.type,
                region=request.region,
            )
        )
    except TeraflockError:
        return ""  # no prices, or the launch itself will report what is wrong with the shape
    if not quote.micros_per_hour:
        return ""
    price = hourly_text(quote.micros_per_hour, quote.currency)
    above = quote.micros_per_hour > parse_amount(os.environ.get(ASK_ABOVE, ASK_ABOVE_DEFAULT))
    if above and not yes:
        confirm(f"This costs {price}. Launch it?", f"Launching for {price}")
        return ""
    return f"Costs {price}, {amount_text(quote.micros_per_month, quote.currency)} for a full month"


def tell_spent(client: "Client", instances: Iterable["InstanceAnswer"]) -> None:
    """Show what instances have cost so far."""
    costs = costs_by_id(client)
    for instance in instances:
        cost = costs.get(instance.id)
        if cost is not None and cost.micros:
            disk = (
                f"; its disk costs {hourly_text(cost.micros_per_hour, cost.currency)}"
                if cost.micros_per_hour
                else ""
            )
            remark(f"`{instance.name}` has cost {amount_text(cost.micros, cost.currency)}{disk}")
