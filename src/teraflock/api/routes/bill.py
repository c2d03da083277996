"""Bills: the total of a month, its lines and export, current prices, and verification."""

from collections.abc import Generator

from teraflock.api.call import Call, cut
from teraflock.api.convert.bill import bill_answer, cost_answer, line_answer, margin_answer, verdict_answer
from teraflock.api.convert.instance import filter_from
from teraflock.api.query import BillQuery, InstancePageQuery, LineQuery, MarginQuery, MonthQuery
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.base.limits import NUMBER_MAX
from teraflock.bill.export.model import BillingAccount
from teraflock.tenant.rules import Permission
from teraflock.wire.bill import BillAnswer, CostPage, LinePage, MarginAnswer, VerdictAnswer

routes = Routes("bills", scope=Scope.PROJECT, read=Permission.USAGE_READ)


@routes.get("/v1/bill")
def show_bill(call: Call, query: BillQuery) -> BillAnswer:
    """Show what a project was charged in a month, grouped by GPU model, user, instance or label."""
    bills = call.nouns.bills
    month = query.month or bills.month_now()
    found = bills.bill(call.project.id, month, query.by, query.label)
    names = call.nouns.tenants.members.names(each.name for each in found.groups) if query.by == "user" else {}
    return bill_answer(found, query.by, names)


@routes.get("/v1/bill/lines")
def list_bill_lines(call: Call, query: LineQuery) -> LinePage:
    """List every charge of a month, in the order of booking."""
    bills = call.nouns.bills
    after = min(int(query.after), NUMBER_MAX) if query.after.isdigit() else 0
    month = query.month or bills.month_now()
    found = bills.lines(
        call.project.id, month, after=after, limit=query.limit + 1, instance_id=query.instance
    )
    rows, last = cut(tuple(found), query.limit)
    return LinePage(items=tuple(map(line_answer, rows)), next=str(last.number) if last else None)


@routes.get("/v1/bill/focus", may=Permission.BILL_READ, work=RouteWork.LONG, media_type="text/csv")
def export_focus(call: Call, query: MonthQuery) -> Generator[bytes, None, None]:
    """Export the charges of a month as CSV with the columns of FinOps FOCUS 1.2."""
    bills, project = call.nouns.bills, call.project
    account = BillingAccount(
        issuer=bills.issuer.partition("\n")[0],
        organisation_id=project.organisation_id,
        project_id=project.id,
        project=project.name,
    )
    for piece in bills.focus(account, query.month or bills.month_now()):
        yield piece.encode()


@routes.post("/v1/bill/verify", scope=Scope.INSTALLATION, may=Permission.BILL_WRITE, work=RouteWork.LONG)
def verify_bills(call: Call) -> VerdictAnswer:
    """Recompute every charge from the events, and compare."""
    return verdict_answer(call.nouns.bills.verify())


@routes.get("/v1/bill/margin", scope=Scope.INSTALLATION, may=Permission.BILL_WRITE, work=RouteWork.LONG)
def show_margin(call: Call, query: MarginQuery) -> MarginAnswer:
    """Revenue, cost and margin of a month, over all tenants: by organisation, project, instance or host."""
    bills = call.nouns.bills
    return margin_answer(bills.margin(query.month or bills.month_now(), query.by))


@routes.get("/v1/costs")
def list_costs(call: Call, query: InstancePageQuery) -> CostPage:
    """List the hourly price of each instance, and what it has cost so far.

    It accepts the same filters as the list of instances, and has the same order.
    """
    found = call.nouns.instances.page(
        call.project.id, after=query.after, limit=query.limit + 1, gone=query.gone, only=filter_from(query)
    )
    views, last = cut(found, query.limit)
    costs = call.nouns.bills.costs(call.project.id, [view.instance.id for view in views])
    idle = call.nouns.fleet.idle(call.project.id)
    items = [
        cost_answer(view.instance.id, view.instance.name, costs[view.instance.id], idle.get(view.instance.id))
        for view in views
    ]
    return CostPage(items=tuple(items), next=last.instance.id if last else None)
