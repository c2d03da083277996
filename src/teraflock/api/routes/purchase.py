"""Purchases: months and reservations of instances."""

from collections.abc import Sequence

from teraflock.api.call import Call
from teraflock.api.query import InProject
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.base.errors import BadInput
from teraflock.base.filling import filled
from teraflock.bill.purchase.model import Mode, Preview, Purchase, PurchaseLimit, Term
from teraflock.bill.times import moment
from teraflock.tenant.rules import Permission
from teraflock.wire.purchase import (
    LimitAnswer,
    LimitList,
    LimitRequest,
    PreviewAnswer,
    PurchaseAnswer,
    PurchaseList,
    PurchaseRequest,
    RenewalChange,
    TermAnswer,
)

routes = Routes("purchases", scope=Scope.PROJECT, read=Permission.USAGE_READ, write=Permission.INSTANCE_WRITE)


@routes.get("/v1/purchases")
def list_purchases(call: Call, query: InProject) -> PurchaseList:
    """List purchases."""
    purchases = call.nouns.bills.purchases
    names = purchases.instance_names(call.project.id)
    return PurchaseList(
        items=tuple(
            purchase_answer(purchase, terms, names[purchase.instance_id])
            for purchase, terms in purchases.of_project(call.project.id)
        )
    )


@routes.post(
    "/v1/purchases", scope=Scope.PROJECT, may=Permission.INSTANCE_WRITE, status=201, creates=True,
    errors=("conflict", "refused", "bad_input", "budget_reached"),
)  # fmt: skip
def make_purchase(call: Call, query: InProject, body: PurchaseRequest) -> PurchaseAnswer:
    """Pay for an instance by the month, or reserve it for years. Needs `purchase.write` or a purchase limit."""
    instance_id, mode = _wanted_purchase(call, body)
    made, _ = call.nouns.bills.purchases.buy(
        call.project.id, instance_id, mode, years=body.years, upfront=body.upfront, renews=body.renews, by=call.by
    )  # fmt: skip
    return _purchase(call, made.id)


@routes.post(
    "/v1/purchase-preview", scope=Scope.PROJECT, may=Permission.USAGE_READ, work=RouteWork.READ,
    errors=("conflict", "refused", "bad_input"),
)  # fmt: skip
def preview_purchase(call: Call, query: InProject, body: PurchaseRequest) -> PreviewAnswer:
    """Show what a purchase would cost now, without buying."""
    instance_id, mode = _wanted_purchase(call, body)
    found = call.nouns.bills.purchases.preview(
        call.project.id, instance_id, mode, years=body.years, upfront=body.upfront
    )
    return preview_answer(found)


@routes.patch("/v1/purchases/{purchase}", errors=("conflict",))
def change_renewal(call: Call, query: InProject, purchase: str, body: RenewalChange) -> PurchaseAnswer:
    """Turn the automatic renewal of a purchase on or off. Needs `purchase.write` or a purchase limit."""
    call.nouns.bills.purchases.set_renewal(call.project.id, purchase, body.renews, by=call.by)
    return _purchase(call, purchase)


@routes.post("/v1/purchases/{purchase}/upgrade", errors=("conflict", "refused", "budget_reached"))
def upgrade_purchase(call: Call, query: InProject, purchase: str) -> PurchaseAnswer:
    """Extend a purchase to the current size of its instance. Needs `purchase.write` or a purchase limit."""
    call.nouns.bills.purchases.upgrade(call.project.id, purchase, by=call.by)
    return _purchase(call, purchase)


@routes.delete("/v1/purchases/{purchase}", errors=("conflict", "refused"))
def end_purchase(call: Call, query: InProject, purchase: str) -> PurchaseAnswer:
    """End a month early. The price book sets the refund.

    Needs `purchase.write` or a purchase limit.
    """
    call.nouns.bills.purchases.end(call.project.id, purchase, by=call.by)
    return _purchase(call, purchase)


@routes.get("/v1/purchase-limits")
def list_purchase_limits(call: Call, query: InProject) -> LimitList:
    """List the purchase limits of members."""
    currency, month, limits = call.nouns.bills.purchases.limits(call.project.id)
    names = call.nouns.tenants.members.names(each.member_id for each in limits)
    items = [
        limit_answer(each, names.get(each.member_id, each.member_id), currency, month) for each in limits
    ]
    return LimitList(items=tuple(items))


@routes.put("/v1/purchase-limits/{member}", may=Permission.PROJECT_WRITE, status=204)
def set_purchase_limit(call: Call, query: InProject, member: str, body: LimitRequest) -> None:
    """Let a member buy up to an amount per month. The limit also applies to an owner."""
    found = call.nouns.tenants.members.in_project_of(call.project, member)
    call.nouns.bills.purchases.set_limit(call.project.id, found, body.micros, by=call.by)


@routes.delete("/v1/purchase-limits/{member}", may=Permission.PROJECT_WRITE, status=204)
def remove_purchase_limit(call: Call, query: InProject, member: str) -> None:
    """Remove the purchase limit of a member. Owners can then buy without a limit, others cannot buy."""
    found = call.nouns.tenants.members.in_project_of(call.project, member)
    call.nouns.bills.purchases.set_limit(call.project.id, found, None, by=call.by)


def _wanted_purchase(call: Call, body: PurchaseRequest) -> tuple[str, Mode]:
    """The id of the instance, and the terms of the purchase."""
    if body.upfront and not body.years:
        raise BadInput("Only reservations can be paid upfront", hint="Leave out `upfront`, or set `years`")
    view = call.nouns.instances.view(call.project.id, body.instance)
    return view.instance.id, "reserved" if body.years else "monthly"


def _purchase(call: Call, id: str) -> PurchaseAnswer:
    purchases = call.nouns.bills.purchases
    found, terms = purchases.one(call.project.id, id)
    return purchase_answer(found, terms, purchases.instance_names(call.project.id)[found.instance_id])


def preview_answer(found: Preview) -> PreviewAnswer:
    return filled(PreviewAnswer, found, starts_at=moment(found.from_us), paid_until=moment(found.until_us))


def limit_answer(limit: PurchaseLimit, member: str, currency: str, month: str) -> LimitAnswer:
    return LimitAnswer(
        member_id=limit.member_id,
        member=member,
        currency=currency,
        micros=limit.micros,
        month=month,
        spent_micros=limit.spent_micros if limit.month == month else 0,
    )


def purchase_answer(purchase: Purchase, terms: Sequence[Term], instance: str = "") -> PurchaseAnswer:
    return filled(
        PurchaseAnswer,
        purchase,
        instance=instance,
        currency=terms[-1].currency,
        paid_until=moment(terms[-1].until_us),
        terms=tuple(
            filled(TermAnswer, each, starts_at=moment(each.from_us), ends_at=moment(each.until_us))
            for each in terms
        ),
    )
