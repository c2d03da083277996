"""How a project pays, and its payments."""

from teraflock.api.call import Call
from teraflock.api.query import InProject
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.bill.store import Profile
from teraflock.tenant.rules import Permission
from teraflock.wire.billing import PaymentRequest, ProfileAnswer, ProfileShape

routes = Routes("billing", scope=Scope.PROJECT, read=Permission.BILL_READ, write=Permission.BILL_WRITE)


@routes.get("/v1/billing")
def show_billing(call: Call, query: InProject) -> ProfileAnswer:
    """Show how a project pays, what it has paid in advance, and what it owes."""
    return _profile(call)


@routes.put("/v1/billing", errors=("conflict", "bad_input"))
def set_billing(call: Call, query: InProject, body: ProfileShape) -> ProfileAnswer:
    """Set how a project pays. The currency cannot change after the first charge."""
    profile = filled(Profile, body, project_id=call.project.id, tax_bp=body.tax_basis_points)
    call.nouns.bills.set_profile(profile, by=call.by)
    return _profile(call)


@routes.post("/v1/payments", status=201, creates=True)
def make_payment(call: Call, query: InProject, body: PaymentRequest) -> ProfileAnswer:
    """Record a payment: for an invoice, or in advance."""
    invoices = call.nouns.bills.invoices
    if body.month is None:
        invoices.pay_in(call.project.id, body.micros, by=call.by)
    else:
        invoices.pay_invoice(call.project.id, body.month, body.micros, by=call.by)
    return _profile(call)


def _profile(call: Call) -> ProfileAnswer:
    pending, available = call.nouns.bills.pending(call.project.id)
    profile, balance, owed = call.nouns.bills.standing(call.project.id)
    return profile_answer(profile, balance=balance, owed=owed, pending=pending, available=available)


def profile_answer(
    profile: Profile, *, balance: int, owed: int, pending: int, available: int
) -> ProfileAnswer:
    return filled(
        ProfileAnswer,
        profile,
        tax_basis_points=profile.tax_bp,
        balance_micros=balance,
        owed_micros=owed,
        pending_micros=pending,
        available_micros=available,
    )
