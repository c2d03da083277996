"""Costs: a month by card, member, label, instance, day and project; forecast, budget, credits, invoices and margin."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from teraflock.base.errors import BadInput, NotFound, TeraflockError
from teraflock.base.money import parse_micros
from teraflock.client.transport import path_of
from teraflock.console.answer import Answer, Forwarded
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant import rules
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.bill import BillAnswer, CostAnswer
from teraflock.wire.budget import BudgetAnswer, BudgetRequest

pages = Pages()
OF_PROJECT: Final = "/projects/{project}/costs"
READ: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.USAGE_READ}
BILLS: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.BILL_READ}
GROUPINGS: Final = (("gpu", "Card"), ("user", "Member"), ("label", "Label"), ("instance", "Instance"))
MARGINS: Final = (("project", "Project"), ("organisation", "Organisation"), ("host", "Host"))
GROUPS_SHOWN: Final = 25
MONTHS_SHOWN: Final = 12
PROJECTS_SUMMED: Final = 25
IDLE_ROWS: Final = 200
IDLE_PAGES_MAX: Final = 2
"""Of so many running instances each: beyond this, `tera ps` is the better tool."""
LEVELS: Final = (50, 80, 100)
_MONTH: Final = re.compile(r"20\d\d-(0[1-9]|1[0-2])")
_INVOICE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"


@pages.get(OF_PROJECT, **READ)
def show_costs(call: PageCall) -> Answer:
    """What the project costs in a month."""
    client, month = call.client, _month(call)
    by = _one_of(call.request.query.text("by"), GROUPINGS)
    bill = client.bills.get(month=month, by=by, label=call.request.query.text("label"))
    return call.page(
        "costs/show.html",
        section="costs",
        bill=bill,
        by=by,
        label=call.request.query.text("label"),
        groupings=GROUPINGS,
        groups_shown=GROUPS_SHOWN,
        month=month,
        months=_months(call),
        is_now=month == f"{call.now:%Y-%m}",
        budget=_budget(call),
        purchases=[each for each in client.purchases.list() if not each.ended],
        invoices=tuple(reversed(client.invoices.list())) if call.may(Permission.BILL_READ) else None,
    )


@pages.get(f"{OF_PROJECT}/days", **READ)
def show_charged_days(call: PageCall) -> Answer:
    """The charges of each day, as data for the chart."""
    bill = call.client.bills.get(month=_month(call), by="day")
    body = {"currency": bill.currency, "days": [(each.name, each.micros) for each in bill.groups]}
    return Answer(body=msgspec.json.encode(body), media_type="application/json")


@pages.get(f"{OF_PROJECT}/credits", **READ)
def list_credits(call: PageCall) -> Answer:
    """The credits of the project, and what is left of what it paid in advance."""
    account = call.client.billing.get() if call.may(Permission.BILL_READ) else None
    return call.part("costs/credits.html", credits=call.client.credits.list(), account=account)


@pages.get(f"{OF_PROJECT}/projects", **READ)
def sum_projects(call: PageCall) -> Answer:
    """The same month in each project that the reader may see."""
    month, found = _month(call), []
    seen = [each for each in call.projects if Permission.USAGE_READ in rules.in_project(call.actor, each)]
    for project in seen[:PROJECTS_SUMMED]:
        bill = call.client.transport.get(path_of("bill"), BillAnswer, project=project.id, month=month)
        found.append((project, bill))
    found.sort(key=lambda each: -(each[1].micros + each[1].unbooked_micros))
    return call.part(
        "costs/projects.html", found=found, more=max(0, len(seen) - PROJECTS_SUMMED), month=month
    )


@pages.get(f"{OF_PROJECT}/idle", **READ)
def list_idle(call: PageCall) -> Answer:
    """Instances whose GPUs are idle, and what they cost."""
    idle: list[CostAnswer] = []
    after, is_whole = "", False
    for _ in range(IDLE_PAGES_MAX):
        page = call.client.bills.cost_page(after=after, limit=IDLE_ROWS, states=("running",))
        idle += [each for each in page.items if each.idle_gpus and each.idle_since]
        if page.next is None:
            is_whole = True
            break
        after = page.next
    total = sum(each.micros_per_hour for each in idle)
    return call.part(
        "costs/idle.html", idle=idle, checked=None if is_whole else IDLE_PAGES_MAX * IDLE_ROWS, total=total
    )


@pages.get("/margin", scope=Scope.INSTALLATION, may=Permission.BILL_WRITE, long=True)
def show_margin(call: PageCall) -> Answer:
    """Revenue, cost and margin over all tenants."""
    month, by = _month(call), _one_of(call.request.query.text("by"), MARGINS)
    margin = call.client.bills.margin(month=month, by=by)
    return call.page(
        "costs/margin.html",
        section="costs",
        margin=margin,
        month=month,
        months=_months(call),
        by=by,
        groupings=MARGINS,
        rows=margin.rows[:200],
    )


@pages.get(f"{OF_PROJECT}/focus", **BILLS)
def download_focus(call: PageCall) -> Forwarded:
    """The charges of a month as CSV with the columns of FOCUS."""
    return Forwarded(target=f"/v1/bill/focus?project={call.project.id}&month={_month(call)}")


@pages.get(f"{OF_PROJECT}/invoices/{{month}}", **BILLS)
def show_invoice(call: PageCall) -> Answer:
    """An invoice to print. It may run no script, and it belongs to no origin."""
    _check_month(call.path["month"])
    content = call.client.invoices.html(call.path["month"])
    headers = {"Content-Security-Policy": _INVOICE_POLICY}
    return Answer(body=content, media_type="text/html;charset=utf-8", headers=headers)


@pages.post(f"{OF_PROJECT}/budget", scope=Scope.PROJECT, may=Permission.PROJECT_WRITE, on_error=show_costs)
def set_project_budget(call: PageCall) -> Answer:
    """Set the monthly budget."""
    text = call.form.text("amount")
    try:
        micros = parse_micros(text)
    except ValueError:
        raise BadInput(f"`{text[:40]}` is not an amount", hint="Write it as `500` or `12.50`") from None
    if not 0 <= micros <= 10**15:
        raise BadInput(f"`{text[:40]}` is out of range", hint="Write an amount of 0 or more, such as `500`")
    call.client.budgets.set(
        BudgetRequest(micros=micros, levels=LEVELS, hard_stop=bool(call.form.text("hard_stop")))
    )
    return call.done(call.url("costs"), "The budget is set")


@pages.post(
    f"{OF_PROJECT}/budget/remove", scope=Scope.PROJECT, may=Permission.PROJECT_WRITE, on_error=show_costs
)
def remove_project_budget(call: PageCall) -> Answer:
    """Remove the monthly budget."""
    call.client.budgets.remove()
    return call.done(call.url("costs"), "The budget is removed")


def _month(call: PageCall) -> str:
    return _check_month(call.request.query.text("month") or f"{call.now:%Y-%m}")


def _check_month(month: str) -> str:
    if not _MONTH.fullmatch(month):
        raise BadInput(f"`{month[:40]}` is not a month", hint="Write it as year and month: `2026-10`")
    return month


def _months(call: PageCall) -> list[str]:
    """This month and those before, newest first."""
    count = call.now.year * 12 + call.now.month - 1
    return [f"{each // 12:04}-{each % 12 + 1:02}" for each in range(count, count - MONTHS_SHOWN, -1)]


def _one_of(word: str, known: tuple[tuple[str, str], ...]) -> str:
    return word if word in dict(known) else known[0][0]


def _budget(call: PageCall) -> BudgetAnswer | None:
    try:
        return call.client.budgets.get()
    except NotFound:
        return None
    except TeraflockError as error:
        if error.code == "not_found":
            return None
        raise
