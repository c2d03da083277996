"""Prices, quotes, bills, budgets, credits, purchases, invoices, and the proof of the books."""

from collections.abc import Generator

from teraflock.api.call import Call, cut
from teraflock.api.convert.bill import (
    bill_answer,
    budget_answer,
    cost_answer,
    credit_answer,
    invoice_answer,
    limit_answer,
    line_answer,
    preview_answer,
    prices_answer,
    purchase_answer,
    quote_answer,
    verdict_answer,
)
from teraflock.api.convert.instance import wish_from
from teraflock.api.query import BillQuery, InProject, LineQuery, MonthQuery, PageInProject
from teraflock.api.route import Routes, Scope, Work
from teraflock.base.errors import BadInput, NotFound
from teraflock.bill.budget.model import Budget, Cap
from teraflock.bill.export.model import Account
from teraflock.bill.invoice.html import page
from teraflock.bill.price.model import Place
from teraflock.bill.purchase.model import Mode
from teraflock.bill.store import Profile
from teraflock.instance.orders import shape_of
from teraflock.meter.model import Holding
from teraflock.tenant.model import By
from teraflock.tenant.rules import Permission
from teraflock.wire.bill import (
    BillAnswer,
    BookRequest,
    BudgetAnswer,
    BudgetRequest,
    CapRequest,
    CostPage,
    CreditAnswer,
    CreditList,
    CreditRequest,
    InvoiceAnswer,
    InvoiceList,
    InvoiceRequest,
    LimitList,
    LimitRequest,
    LinePage,
    PaymentRequest,
    PeriodsAnswer,
    PreviewAnswer,
    PricesAnswer,
    ProfileAnswer,
    ProfileShape,
    PurchaseAnswer,
    PurchaseList,
    PurchaseRequest,
    QuoteAnswer,
    QuoteRequest,
    RenewalChange,
    VerdictAnswer,
)

routes = Routes("bills")
HOSTS_MAX = 10_000
NUMBER_MAX = 2**63 - 1
"""The largest number a column holds."""


@routes.get("/v1/prices", scope=Scope.KEY, errors=("not_found",))
def show_prices(call: Call) -> PricesAnswer:
    """What everything costs now."""
    return prices_answer(call.nouns.bills.prices.now())


@routes.put(
    "/v1/prices",
    scope=Scope.HOUSE,
    may=Permission.BILL_WRITE,
    errors=("bad_price_book", "bad_input", "unknown_name"),
)
def set_prices(call: Call, body: BookRequest) -> PeriodsAnswer:
    """Take a price book, as a whole. The past keeps its prices."""
    hosts = {host.name: host.id for host in call.nouns.fleet.hosts(limit=HOSTS_MAX)}
    taken = call.nouns.bills.prices.take(
        body.text, name=body.name, member=call.actor.member_id, hosts=hosts, by=By(actor=call.actor)
    )
    return PeriodsAnswer(items=tuple(map(prices_answer, taken)))


@routes.post(
    "/v1/quote", scope=Scope.PROJECT, may=Permission.USAGE_READ, work=Work.READ,
    errors=("refused", "unknown_name", "bad_input"),
)  # fmt: skip
def show_quote(call: Call, query: InProject, body: QuoteRequest) -> QuoteAnswer:
    """What a launch would cost by the hour, by the month, and until a deadline."""
    if body.until is not None and body.until.tzinfo is None:
        raise BadInput("The deadline has no time zone", hint="Such as `2026-12-01T18:00:00Z`")
    hosts = call.nouns.fleet.hosts(limit=HOSTS_MAX)
    shape = shape_of(wish_from(body.shape), hosts)
    places = [
        Place(host.id, host.region)
        for host in hosts
        if body.host in ("", host.id, host.name)
        and sum(card.gpu == shape.gpu for card in host.gpus) >= shape.gpus
    ]
    held = Holding(
        gpu=shape.gpu, gpus=shape.gpus, vcpus=shape.vcpus, ram_bytes=shape.ram_bytes, disk_bytes=shape.disk_bytes,
        mode=body.mode,
    )  # fmt: skip
    found = call.nouns.bills.quote(
        call.project.id, held, places=places, instances=body.instances, until=body.until
    )
    return quote_answer(found, shape)


@routes.get("/v1/bill", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def show_bill(call: Call, query: BillQuery) -> BillAnswer:
    """What a month cost a project, added up by card, user, instance or label."""
    bills = call.nouns.bills
    month = query.month or bills.month_now()
    found = bills.bill(call.project.id, month, query.by, query.label)
    names = call.nouns.tenants.members.names(each.name for each in found.groups) if query.by == "user" else {}
    return bill_answer(found, query.by, names)


@routes.get("/v1/bill/lines", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def list_bill_lines(call: Call, query: LineQuery) -> LinePage:
    """Every charge of a month, in the order they were booked."""
    bills = call.nouns.bills
    after = min(int(query.after), NUMBER_MAX) if query.after.isdigit() else 0
    month = query.month or bills.month_now()
    rows, last = cut(
        tuple(bills.lines(call.project.id, month, after=after, limit=query.limit + 1)), query.limit
    )
    return LinePage(items=tuple(map(line_answer, rows)), next=str(last.number) if last else None)


@routes.get(
    "/v1/bill/focus", scope=Scope.PROJECT, may=Permission.BILL_READ, work=Work.LONG, media_type="text/csv"
)
def export_focus(call: Call, query: MonthQuery) -> Generator[bytes, None, None]:
    """The charges of a month in the columns of FinOps FOCUS 1.2, as CSV."""
    bills, project = call.nouns.bills, call.project
    account = Account(
        issuer=bills.issuer.partition("\n")[0],
        organisation_id=project.organisation_id,
        project_id=project.id,
        project=project.name,
    )
    for piece in bills.focus(account, query.month or bills.month_now()):
        yield piece.encode()


@routes.post("/v1/bill/verify", scope=Scope.HOUSE, may=Permission.BILL_WRITE, work=Work.LONG)
def verify_bills(call: Call) -> VerdictAnswer:
    """Work every charge out again from the events, and compare it with the books."""
    return verdict_answer(call.nouns.bills.verify())


@routes.get("/v1/costs", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def list_costs(call: Call, query: PageInProject) -> CostPage:
    """What each instance costs by the hour, and has cost so far."""
    found = call.nouns.instances.page(call.project.id, after=query.after, limit=query.limit + 1)
    views, last = cut(found, query.limit)
    costs = call.nouns.bills.costs(call.project.id, [view.instance.id for view in views])
    idle = call.nouns.fleet.idle(call.project.id)
    items = [
        cost_answer(view.instance.id, view.instance.name, costs[view.instance.id], idle.get(view.instance.id))
        for view in views
    ]
    return CostPage(items=tuple(items), next=last.instance.id if last else None)


@routes.get("/v1/budget", scope=Scope.PROJECT, may=Permission.USAGE_READ, errors=("not_found",))
def show_budget(call: Call, query: InProject) -> BudgetAnswer:
    """What a project may spend in a month, and where it stands."""
    standing = call.nouns.bills.budgets.standing(call.project.id)
    if standing is None:
        raise NotFound("This project has no budget", hint="`tera budget set 500` sets one")
    return budget_answer(standing)


@routes.put("/v1/budget", scope=Scope.PROJECT, may=Permission.PROJECT_WRITE)
def set_budget(call: Call, query: InProject, body: BudgetRequest) -> BudgetAnswer:
    """Set the budget of a project. One below what is spent already is taken, and stops new launches."""
    budget = Budget(
        project_id=call.project.id, currency="", micros=body.micros, levels=tuple(sorted(set(body.levels))),
        hard_stop=body.hard_stop, notice_seconds=body.notice_seconds,
    )  # fmt: skip
    return budget_answer(call.nouns.bills.budgets.set(budget, by=_by(call)))


@routes.put("/v1/budget/cap", scope=Scope.PROJECT, may=Permission.BILL_WRITE)
def set_budget_cap(call: Call, query: InProject, body: CapRequest) -> BudgetAnswer:
    """Cap what a project may spend in a month. The project sees it and cannot change it."""
    cap = Cap(project_id=call.project.id, currency="", micros=body.micros, notice_seconds=body.notice_seconds)
    return budget_answer(call.nouns.bills.budgets.set_cap(cap, by=_by(call)))


@routes.delete("/v1/budget/cap", scope=Scope.PROJECT, may=Permission.BILL_WRITE, status=204)
def remove_budget_cap(call: Call, query: InProject) -> None:
    """Lift the cap. The project's own budget stays."""
    call.nouns.bills.budgets.remove_cap(call.project.id, by=_by(call))


@routes.delete("/v1/budget", scope=Scope.PROJECT, may=Permission.PROJECT_WRITE, status=204)
def remove_budget(call: Call, query: InProject) -> None:
    """Remove a project's own budget. A cap of the operator stays."""
    call.nouns.bills.budgets.remove(call.project.id, by=_by(call))


@routes.get("/v1/credits", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def list_credits(call: Call, query: InProject) -> CreditList:
    """Credits of a project, the next to expire first."""
    return CreditList(items=tuple(map(credit_answer, call.nouns.bills.credits.grants(call.project.id))))


@routes.post(
    "/v1/credits",
    scope=Scope.PROJECT,
    may=Permission.BILL_WRITE,
    status=201,
    creates=True,
    errors=("bad_input",),
)
def make_credit(call: Call, query: InProject, body: CreditRequest) -> CreditAnswer:
    """Give a project credit in the currency it pays in."""
    if body.expires_at is not None and body.expires_at.tzinfo is None:
        raise BadInput("The expiry has no time zone", hint="Such as `2026-12-01T00:00:00Z`")
    made = call.nouns.bills.credits.grant(
        call.project.id, body.micros, body.reason, body.expires_at, by=_by(call)
    )
    return credit_answer(made)


@routes.get("/v1/billing", scope=Scope.PROJECT, may=Permission.BILL_READ)
def show_billing(call: Call, query: InProject) -> ProfileAnswer:
    """How a project pays, what it has paid in advance, and what it owes."""
    return _profile(call)


@routes.put("/v1/billing", scope=Scope.PROJECT, may=Permission.BILL_WRITE, errors=("conflict", "bad_input"))
def set_billing(call: Call, query: InProject, body: ProfileShape) -> ProfileAnswer:
    """Say how a project pays. Its currency is fixed once something was charged."""
    call.nouns.bills.set_profile(
        Profile(
            project_id=call.project.id, currency=body.currency, pays=body.pays, tax_name=body.tax_name,
            tax_bp=body.tax_basis_points, customer=body.customer, tax_number=body.tax_number,
        ),
        by=_by(call),
    )  # fmt: skip
    return _profile(call)


@routes.post("/v1/payments", scope=Scope.PROJECT, may=Permission.BILL_WRITE, status=201, creates=True)
def make_payment(call: Call, query: InProject, body: PaymentRequest) -> ProfileAnswer:
    """Note money that came in: for an invoice, or in advance."""
    invoices = call.nouns.bills.invoices
    if body.month is None:
        invoices.pay_in(call.project.id, body.micros, by=_by(call))
    else:
        invoices.pay_invoice(call.project.id, body.month, body.micros, by=_by(call))
    return _profile(call)


@routes.get("/v1/purchases", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def list_purchases(call: Call, query: InProject) -> PurchaseList:
    """Months and years that were bought."""
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
    """Pay for what an instance holds by the month, or for years. Needs `purchase.write`, or a purchase limit."""
    instance_id, mode = _wanted_purchase(call, body)
    made, _ = call.nouns.bills.purchases.buy(
        call.project.id, instance_id, mode, years=body.years, upfront=body.upfront, renews=body.renews, by=_by(call)
    )  # fmt: skip
    return _purchase(call, made.id)


@routes.post(
    "/v1/purchase-preview", scope=Scope.PROJECT, may=Permission.USAGE_READ, work=Work.READ,
    errors=("conflict", "refused", "bad_input"),
)  # fmt: skip
def preview_purchase(call: Call, query: InProject, body: PurchaseRequest) -> PreviewAnswer:
    """What a purchase would cost now. Buys nothing."""
    instance_id, mode = _wanted_purchase(call, body)
    found = call.nouns.bills.purchases.preview(
        call.project.id, instance_id, mode, years=body.years, upfront=body.upfront
    )
    return preview_answer(found)


@routes.patch(
    "/v1/purchases/{purchase}", scope=Scope.PROJECT, may=Permission.INSTANCE_WRITE, errors=("conflict",)
)
def change_renewal(call: Call, query: InProject, purchase: str, body: RenewalChange) -> PurchaseAnswer:
    """Let a purchase go on by itself, or run out. Needs `purchase.write`, or a purchase limit."""
    call.nouns.bills.purchases.set_renewal(call.project.id, purchase, body.renews, by=_by(call))
    return _purchase(call, purchase)


@routes.post(
    "/v1/purchases/{purchase}/upgrade",
    scope=Scope.PROJECT,
    may=Permission.INSTANCE_WRITE,
    errors=("conflict", "refused", "budget_reached"),
)
def upgrade_purchase(call: Call, query: InProject, purchase: str) -> PurchaseAnswer:
    """Let a purchase grow to what its instance holds now. Needs `purchase.write`, or a purchase limit."""
    call.nouns.bills.purchases.upgrade(call.project.id, purchase, by=_by(call))
    return _purchase(call, purchase)


@routes.delete(
    "/v1/purchases/{purchase}",
    scope=Scope.PROJECT,
    may=Permission.INSTANCE_WRITE,
    errors=("conflict", "refused"),
)
def end_purchase(call: Call, query: InProject, purchase: str) -> PurchaseAnswer:
    """End a month that was bought; the price book says what is given back.

    Needs `purchase.write`, or a purchase limit."""
    call.nouns.bills.purchases.end(call.project.id, purchase, by=_by(call))
    return _purchase(call, purchase)


@routes.get("/v1/purchase-limits", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def list_purchase_limits(call: Call, query: InProject) -> LimitList:
    """What members may commit to by purchases in a month."""
    currency, month, limits = call.nouns.bills.purchases.limits(call.project.id)
    names = call.nouns.tenants.members.names(each.member_id for each in limits)
    items = [
        limit_answer(each, names.get(each.member_id, each.member_id), currency, month) for each in limits
    ]
    return LimitList(items=tuple(items))


@routes.put("/v1/purchase-limits/{member}", scope=Scope.PROJECT, may=Permission.PROJECT_WRITE, status=204)
def set_purchase_limit(call: Call, query: InProject, member: str, body: LimitRequest) -> None:
    """Let a member buy up to an amount a month; an owner who has a limit is bound by it too."""
    found = call.nouns.tenants.members.in_project_of(call.project, member)
    call.nouns.bills.purchases.set_limit(call.project.id, found, body.micros, by=_by(call))


@routes.delete("/v1/purchase-limits/{member}", scope=Scope.PROJECT, may=Permission.PROJECT_WRITE, status=204)
def remove_purchase_limit(call: Call, query: InProject, member: str) -> None:
    """Remove a member's limit: owners may buy without one again, others no more."""
    found = call.nouns.tenants.members.in_project_of(call.project, member)
    call.nouns.bills.purchases.set_limit(call.project.id, found, None, by=_by(call))


@routes.get("/v1/invoices", scope=Scope.PROJECT, may=Permission.BILL_READ)
def list_invoices(call: Call, query: InProject) -> InvoiceList:
    """Invoices of a project, oldest first."""
    found = call.nouns.bills.invoices.of_project(call.project.id)
    return InvoiceList(items=tuple(invoice_answer(invoice, open_micros) for invoice, open_micros in found))


@routes.post(
    "/v1/invoices", scope=Scope.PROJECT, may=Permission.BILL_WRITE, status=201, creates=True,
    errors=("conflict", "refused"),
)  # fmt: skip
def make_invoice(call: Call, query: InProject, body: InvoiceRequest) -> InvoiceAnswer:
    """Issue the invoice of a month that is over; the same one when asked again."""
    made = call.nouns.bills.invoices.issue(
        call.project.id, body.month, project_name=call.project.name, by=_by(call)
    )
    return invoice_answer(made, made.due_micros)


@routes.get("/v1/invoice-preview", scope=Scope.PROJECT, may=Permission.BILL_READ, media_type="text/html",
            errors=("conflict",))  # fmt: skip
def preview_invoice(call: Call, query: MonthQuery) -> bytes:
    """The invoice of a month as it would be now, as a page marked as a preview. It has no number."""
    bills = call.nouns.bills
    found = bills.invoices.preview(call.project.id, query.month or bills.month_now())
    return page(found, issuer=bills.issuer).encode()


@routes.get(
    "/v1/invoice-preview/pdf", scope=Scope.PROJECT, may=Permission.BILL_READ, work=Work.LONG,
    media_type="application/pdf", errors=("conflict", "refused"),
)  # fmt: skip
def preview_invoice_as_pdf(call: Call, query: MonthQuery) -> bytes:
    """The invoice of a month as it would be now, as a PDF (A4) marked as a preview."""
    from teraflock.bill.invoice.pdf import pdf  # as below

    bills = call.nouns.bills
    found = bills.invoices.preview(call.project.id, query.month or bills.month_now())
    return pdf(found, issuer=bills.issuer)


@routes.get("/v1/invoices/{month}", scope=Scope.PROJECT, may=Permission.BILL_READ, media_type="text/html")
def show_invoice(call: Call, query: InProject, month: str) -> bytes:
    """An invoice as a page to print or send."""
    return page(
        call.nouns.bills.invoices.one(call.project.id, month), issuer=call.nouns.bills.issuer
    ).encode()


@routes.get(
    "/v1/invoices/{month}/pdf", scope=Scope.PROJECT, may=Permission.BILL_READ, work=Work.LONG,
    media_type="application/pdf", errors=("refused",),
)  # fmt: skip
def show_invoice_as_pdf(call: Call, query: InProject, month: str) -> bytes:
    """An invoice as a PDF (A4). Letters that its fonts lack are refused: the page in HTML shows them."""
    from teraflock.bill.invoice.pdf import pdf  # half a second to load, for what few servers are ever asked

    return pdf(call.nouns.bills.invoices.one(call.project.id, month), issuer=call.nouns.bills.issuer)


def _by(call: Call) -> By:
    return By(actor=call.actor, project=call.project)


def _wanted_purchase(call: Call, body: PurchaseRequest) -> tuple[str, Mode]:
    """The instance's id, and how it is to be paid for."""
    if body.upfront and not body.years:
        raise BadInput("Only years can be paid at once", hint="Leave `upfront` out, or say how many `years`")
    view = call.nouns.instances.view(call.project.id, body.instance)
    return view.instance.id, "reserved" if body.years else "monthly"


def _purchase(call: Call, id: str) -> PurchaseAnswer:
    purchases = call.nouns.bills.purchases
    found, terms = purchases.one(call.project.id, id)
    return purchase_answer(found, terms, purchases.instance_names(call.project.id)[found.instance_id])


def _profile(call: Call) -> ProfileAnswer:
    pending, available = call.nouns.bills.pending(call.project.id)
    profile, balance, owed = call.nouns.bills.standing(call.project.id)
    return ProfileAnswer(
        currency=profile.currency,
        pays=profile.pays,
        tax_name=profile.tax_name,
        tax_basis_points=profile.tax_bp,
        customer=profile.customer,
        tax_number=profile.tax_number,
        balance_micros=balance,
        owed_micros=owed,
        pending_micros=pending,
        available_micros=available,
    )
