"""Budgets of projects, and the operator's cap."""

from datetime import datetime

from teraflock.api.call import Call
from teraflock.api.query import InProject
from teraflock.api.route import Routes, Scope
from teraflock.base.errors import NotFound
from teraflock.base.filling import filled
from teraflock.bill.budget.model import Budget, Cap, Standing
from teraflock.bill.times import moment
from teraflock.tenant.rules import Permission
from teraflock.wire.budget import BudgetAnswer, BudgetRequest, CapRequest

routes = Routes("budgets", scope=Scope.PROJECT, read=Permission.USAGE_READ, write=Permission.PROJECT_WRITE)


@routes.get("/v1/budget", errors=("not_found",))
def show_budget(call: Call, query: InProject) -> BudgetAnswer:
    """Show the monthly budget of a project, and how much is spent."""
    standing = call.nouns.bills.budgets.standing(call.project.id)
    if standing is None:
        raise NotFound("This project has no budget", hint="Set one with `tera budget set 500`")
    return budget_answer(standing)


@routes.put("/v1/budget")
def set_budget(call: Call, query: InProject, body: BudgetRequest) -> BudgetAnswer:
    """Set the monthly budget of a project. A budget below what is already spent refuses new launches."""
    levels = tuple(sorted(set(body.levels)))
    budget = filled(Budget, body, project_id=call.project.id, currency="", levels=levels)
    return budget_answer(call.nouns.bills.budgets.set(budget, by=call.by))


@routes.put("/v1/budget/cap", may=Permission.BILL_WRITE)
def set_budget_cap(call: Call, query: InProject, body: CapRequest) -> BudgetAnswer:
    """Cap what a project can spend in a month. The project sees the cap and cannot change it."""
    cap = Cap(project_id=call.project.id, currency="", micros=body.micros, notice_seconds=body.notice_seconds)
    return budget_answer(call.nouns.bills.budgets.set_cap(cap, by=call.by))


@routes.delete("/v1/budget/cap", may=Permission.BILL_WRITE, status=204)
def remove_budget_cap(call: Call, query: InProject) -> None:
    """Remove the cap. The project's own budget stays."""
    call.nouns.bills.budgets.remove_cap(call.project.id, by=call.by)


@routes.delete("/v1/budget", status=204)
def remove_budget(call: Call, query: InProject) -> None:
    """Remove a project's own budget. The operator's cap stays."""
    call.nouns.bills.budgets.remove(call.project.id, by=call.by)


def _moment(us: int | None) -> datetime | None:
    return None if us is None else moment(us)


def budget_answer(standing: Standing) -> BudgetAnswer:
    budget = standing.budget
    return filled(
        BudgetAnswer,
        standing,
        currency=budget.currency,
        micros=budget.micros,
        levels=budget.levels,
        hard_stop=budget.hard_stop,
        notice_seconds=budget.notice_seconds,
        is_spent=standing.spent_micros >= budget.micros,
        stops_at=_moment(standing.stop_at_us),
        announced_at=_moment(standing.announced_us),
        stopped_at=_moment(standing.stopped_us),
    )
