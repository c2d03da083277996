"""What the edges ask for: a plan over the stored offers, checked before it is handed out."""

from collections.abc import Mapping, Sequence
from datetime import date

from msgspec.structs import replace

from teraflock.base.clock import Clock, today
from teraflock.base.errors import TeraflockError
from teraflock.base.exchange import Rates
from teraflock.offer import store
from teraflock.offer.model import Shape
from teraflock.offer.rules import first_day
from teraflock.plan.assumptions import Assumptions
from teraflock.plan.check import faults
from teraflock.plan.model import Choice, Plan, Wish
from teraflock.plan.owned import Server, offer_of, shape_of
from teraflock.plan.rules import OLD_PRICE_DAYS, Estimator, choose
from teraflock.storage.database import Database, Transaction


class UnsoundPlan(TeraflockError):
    """The checker found fault with a plan of ours. Never the user's doing."""

    code = "unsound_plan"
    exit_code = 70


def plan(
    database: Database,
    rates: Rates,
    clock: Clock,
    wish: Wish,
    estimate: Estimator,
    assumptions: Assumptions,
    *,
    servers: Sequence[Server] = (),
    regions: tuple[str, ...] = (),
    top: int,
) -> Plan:
    """The best `top` choices, each with the offer to take, and every other shape with the reason why not."""
    on = today(clock)
    with database.read() as tx:
        shapes = [*store.shapes(tx, regions), *map(shape_of, servers)]
        whole = choose(shapes, wish, estimate, assumptions, rates, on, top=top)
        if broken := list(faults(whole, shapes, wish, estimate, assumptions, rates, on)):
            raise UnsoundPlan("The plan did not pass its own check", context={"faults": broken[:10]})
        own = {server.name: server for server in servers}
        shown = tuple(_with_offer(tx, choice, regions, own) for choice in whole.choices[:top])
    return replace(whole, choices=shown + whole.choices[top:], warnings=tuple(_warnings(shown, shapes, on)))


def _with_offer(
    tx: Transaction, choice: Choice, regions: tuple[str, ...], own: Mapping[str, Server]
) -> Choice:
    if choice.shape.mode == "owned" and choice.shape.instance_type in own:
        return replace(choice, offer=offer_of(own[choice.shape.instance_type]))
    return replace(choice, offer=store.cheapest_of(tx, choice.shape, regions))


def _warnings(shown: tuple[Choice, ...], shapes: list[Shape], on: date) -> list[str]:
    warnings = []
    old = [choice for choice in shown if _age_days(choice.shape.as_of, on) > OLD_PRICE_DAYS]
    if old:
        oldest = max(_age_days(choice.shape.as_of, on) for choice in old)
        warnings.append(
            f"{len(old)} of {len(shown)} choices have prices over half a year old, up to {oldest // 30} months"
        )
    unclear = [choice for choice in shown if choice.offer and "unclear:host" in choice.offer.flags]
    if unclear:
        warnings.append(f"{len(unclear)} prices may not cover the host beside the GPU")
    return warnings


def _age_days(as_of: str, on: date) -> int:
    return (on - date.fromisoformat(first_day(as_of))).days if as_of else 10**5
