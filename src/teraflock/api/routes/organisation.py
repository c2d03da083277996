"""Organisations: create, suspend, rename, delete."""

from teraflock.api.call import Call, cut
from teraflock.api.query import Page
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.tenant.model import (
    MadeOrganisation,
    Organisation,
)
from teraflock.tenant.rules import Permission
from teraflock.wire.organisation import (
    OrganisationAnswer,
    OrganisationDeletion,
    OrganisationMade,
    OrganisationPage,
    OrganisationRename,
    OrganisationRequest,
    OrganisationStateChange,
)

routes = Routes(
    "organisations",
    scope=Scope.INSTALLATION,
    read=Permission.ORGANISATION_READ,
    write=Permission.ORGANISATION_WRITE,
)


@routes.get("/v1/organisations")
def list_organisations(call: Call, query: Page) -> OrganisationPage:
    """List all organisations."""
    found = call.nouns.tenants.organisations.page(call.actor, after=query.after, limit=query.limit + 1)
    rows, last = cut(found, query.limit)
    return OrganisationPage(items=tuple(map(organisation_answer, rows)), next=last.id if last else None)


@routes.post("/v1/organisations", status=201, creates=True, secret=True)
def make_organisation(call: Call, body: OrganisationRequest) -> OrganisationMade:
    """Create an organisation with its first project and its owner.

    The response contains the owner's key, which is shown only once.
    """
    return organisation_made(call.nouns.tenants.organisations.make(call.actor, body.name, body.owner))


@routes.get("/v1/organisations/{organisation}")
def show_organisation(call: Call, organisation: str) -> OrganisationAnswer:
    """Show one organisation, by id or name."""
    return organisation_answer(call.nouns.tenants.organisations.show(call.actor, organisation))


@routes.put("/v1/organisations/{organisation}/state", errors=("not_found", "conflict", "refused"))
def set_organisation_state(
    call: Call, organisation: str, body: OrganisationStateChange
) -> OrganisationAnswer:
    """Suspend or resume an organisation.

    The instances of a suspended organisation are stopped. Its members can read, but cannot start instances or create
    keys. After it is resumed, members start their instances themselves.
    """
    organisations = call.nouns.tenants.organisations
    act = organisations.suspend if body.state == "suspended" else organisations.resume
    return organisation_answer(act(call.actor, organisation, body.reason))


@routes.put("/v1/organisations/{organisation}/name", errors=("not_found", "conflict"))
def rename_organisation(call: Call, organisation: str, body: OrganisationRename) -> OrganisationAnswer:
    """Rename an organisation. Its id stays the same."""
    return organisation_answer(
        call.nouns.tenants.organisations.rename(call.actor, organisation, body.name, body.reason)
    )


@routes.delete(
    "/v1/organisations/{organisation}", status=202, errors=("not_found", "conflict", "refused", "bad_input")
)
def delete_organisation(call: Call, query: OrganisationDeletion, organisation: str) -> OrganisationAnswer:
    """Delete an organisation. Its bills and its audit log are kept.

    It must not have instances or images. With `force` they are deleted first, with all their data.
    """
    found = call.nouns.tenants.organisations.remove(call.actor, organisation, query.reason, force=query.force)
    return organisation_answer(found)


def organisation_answer(organisation: Organisation) -> OrganisationAnswer:
    return filled(OrganisationAnswer, organisation)


def organisation_made(made: MadeOrganisation) -> OrganisationMade:
    return OrganisationMade(
        organisation=organisation_answer(made.organisation), owner_id=made.owner.id, key=made.key.secret
    )
