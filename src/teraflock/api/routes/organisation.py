"""Organisations, and who it is that asks."""

from teraflock.api.call import Call, cut
from teraflock.api.convert.tenant import organisation_answer, organisation_made, who_am_i
from teraflock.api.query import Page
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.tenant import OrganisationMade, OrganisationPage, OrganisationRequest, WhoAmI

routes = Routes("organisations")


@routes.get("/v1/whoami", scope=Scope.KEY)
def show_whoami(call: Call) -> WhoAmI:
    """Who stands behind the key in use, and what they may."""
    return who_am_i(call.actor, call.nouns.tenants.organisations.own(call.actor))


@routes.get("/v1/organisations", scope=Scope.HOUSE, may=Permission.ORGANISATION_READ)
def list_organisations(call: Call, query: Page) -> OrganisationPage:
    """All organisations."""
    found = call.nouns.tenants.organisations.page(call.actor, after=query.after, limit=query.limit + 1)
    rows, last = cut(found, query.limit)
    return OrganisationPage(items=tuple(map(organisation_answer, rows)), next=last.id if last else None)


@routes.post(
    "/v1/organisations",
    scope=Scope.HOUSE,
    may=Permission.ORGANISATION_WRITE,
    status=201,
    creates=True,
    secret=True,
)
def make_organisation(call: Call, body: OrganisationRequest) -> OrganisationMade:
    """Make an organisation with its first project and its owner.

    The owner's key is in the answer, and is shown this once.
    """
    return organisation_made(call.nouns.tenants.organisations.make(call.actor, body.name, body.owner))
