"""Credits of a project."""

from typing import Final

from teraflock.api.call import Call
from teraflock.api.query import InProject
from teraflock.api.route import Routes, Scope
from teraflock.base.clock import LATEST, microseconds
from teraflock.base.errors import BadInput
from teraflock.base.filling import filled
from teraflock.bill.credit.model import Grant
from teraflock.bill.times import moment
from teraflock.tenant.rules import Permission
from teraflock.wire.credit import CreditAnswer, CreditList, CreditRequest

routes = Routes("credits", scope=Scope.PROJECT, read=Permission.USAGE_READ, write=Permission.BILL_WRITE)
_LATEST_US: Final = microseconds(LATEST)


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


def credit_answer(grant: Grant) -> CreditAnswer:
    return filled(
        CreditAnswer,
        grant,
        starts_at=moment(grant.from_us),
        expires_at=None if grant.expires_us > _LATEST_US else moment(grant.expires_us),
        is_expired=grant.expired,
    )
