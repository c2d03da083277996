"""Credits of a project."""

from teraflock.api.call import Call
from teraflock.api.convert.credit import credit_answer
from teraflock.api.query import InProject
from teraflock.api.route import Routes, Scope
from teraflock.base.errors import BadInput
from teraflock.tenant.rules import Permission
from teraflock.wire.credit import CreditAnswer, CreditList, CreditRequest

routes = Routes("credits", scope=Scope.PROJECT, read=Permission.USAGE_READ, write=Permission.BILL_WRITE)


@routes.get("/v1/credits")
def list_credits(call: Call, query: InProject) -> CreditList:
    """List the credits of a project. The next to expire comes first."""
    return CreditList(items=tuple(map(credit_answer, call.nouns.bills.credits.grants(call.project.id))))


@routes.post("/v1/credits", status=201, creates=True, errors=("bad_input",))
def make_credit(call: Call, query: InProject, body: CreditRequest) -> CreditAnswer:
    """Give a project credit in its currency."""
    if body.expires_at is not None and body.expires_at.tzinfo is None:
        raise BadInput("The expiry has no time zone", hint="Write it as `2026-12-01T00:00:00Z`")
    made = call.nouns.bills.credits.grant(
        call.project.id, body.micros, body.reason, body.expires_at, by=call.by
    )
    return credit_answer(made)
