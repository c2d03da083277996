"""Organisations, and who it is that asks."""

from teraflock.api.call import Call, cut
from teraflock.api.convert.tenant import (
    organisation_answer,
    organisation_made,
    organisation_quota_from,
    organisation_usage,
    who_am_i,
)
from teraflock.api.query import Page
from teraflock.api.route import Routes, Scope
from teraflock.tenant.model import Organisation
from teraflock.tenant.rules import Permission
from teraflock.wire.operator import OrganisationDeletion, OrganisationRename, OrganisationStateChange
from teraflock.wire.tenant import (
    OrganisationAnswer,
    OrganisationMade,
    OrganisationPage,
    OrganisationQuotaShape,
    OrganisationRequest,
    OrganisationUsage,
    WhoAmI,
)

routes = Routes("organisations")


@routes.get("/v1/whoami", scope=Scope.KEY, errors=("not_found",))
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


@routes.get("/v1/organisations/{organisation}", scope=Scope.HOUSE, may=Permission.ORGANISATION_READ)
def show_organisation(call: Call, organisation: str) -> OrganisationAnswer:
    """One organisation, by id or name."""
    return organisation_answer(call.nouns.tenants.organisations.show(call.actor, organisation))


@routes.put(
    "/v1/organisations/{organisation}/state",
    scope=Scope.HOUSE,
    may=Permission.ORGANISATION_WRITE,
    errors=("not_found", "conflict", "refused"),
)
def set_organisation_state(
    call: Call, organisation: str, body: OrganisationStateChange
) -> OrganisationAnswer:
    """Suspend or resume an organisation.

    While it is suspended its instances are stopped, nothing starts and no key is made; members may still read. After it
    is resumed they start their instances themselves.
    """
    organisations = call.nouns.tenants.organisations
    act = organisations.suspend if body.state == "suspended" else organisations.resume
    return organisation_answer(act(call.actor, organisation, body.reason))


@routes.put(
    "/v1/organisations/{organisation}/name",
    scope=Scope.HOUSE,
    may=Permission.ORGANISATION_WRITE,
    errors=("not_found", "conflict"),
)
def rename_organisation(call: Call, organisation: str, body: OrganisationRename) -> OrganisationAnswer:
    """Give an organisation another name. Its id stays."""
    return organisation_answer(
        call.nouns.tenants.organisations.rename(call.actor, organisation, body.name, body.reason)
    )


@routes.delete(
    "/v1/organisations/{organisation}",
    scope=Scope.HOUSE,
    may=Permission.ORGANISATION_WRITE,
    status=202,
    errors=("not_found", "conflict", "refused", "bad_input"),
)
def delete_organisation(call: Call, query: OrganisationDeletion, organisation: str) -> OrganisationAnswer:
    """Delete an organisation; its bills and its audit log are kept.

    It must have no instances and no images. With `force` these are deleted first, with all data on them.
    """
    found = call.nouns.tenants.organisations.remove(call.actor, organisation, query.reason, force=query.force)
    return organisation_answer(found)


@routes.get("/v1/organisations/{organisation}/usage", scope=Scope.ORGANISATION, may=Permission.USAGE_READ)
def show_organisation_usage(call: Call, organisation: str) -> OrganisationUsage:
    """What an organisation uses over all its projects, and its quota.

    By id or name; another than the key's own only for operators.
    """
    return _usage(call, call.nouns.tenants.organisations.called(call.actor, organisation))


@routes.put(
    "/v1/organisations/{organisation}/quota",
    scope=Scope.HOUSE,
    may=Permission.ORGANISATION_WRITE,
    errors=("unknown_name",),
)
def set_organisation_quota(call: Call, organisation: str, body: OrganisationQuotaShape) -> OrganisationUsage:
    """Set the most an organisation may have at a time, over all its projects.

    What it has already stays, and may not grow beyond. For operators.
    """
    quota = organisation_quota_from(body)
    return _usage(call, call.nouns.tenants.organisations.set_quota(call.actor, organisation, quota))


def _usage(call: Call, found: Organisation) -> OrganisationUsage:
    used = call.nouns.instances.usage_of_organisation(found.id)
    return organisation_usage(found, used, call.nouns.tenants.organisations.quota(found.id))
