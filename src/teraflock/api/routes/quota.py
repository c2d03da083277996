"""Quotas of projects and organisations, and what they use."""

from teraflock.api.call import Call
from teraflock.api.convert.project import project_answer
from teraflock.api.convert.quota import organisation_quota_from, organisation_usage, quota_from, usage_answer
from teraflock.api.route import Routes, Scope
from teraflock.tenant.model import Organisation
from teraflock.tenant.rules import Permission, in_organisation
from teraflock.wire.project import ProjectAnswer
from teraflock.wire.quota import OrganisationQuotaRequest, OrganisationUsage, QuotaRequest, UsageAnswer

routes = Routes("quotas", scope=Scope.PROJECT, read=Permission.USAGE_READ, write=Permission.QUOTA_WRITE)


@routes.get("/v1/organisations/{organisation}/usage", scope=Scope.ORGANISATION, may=Permission.USAGE_READ)
def show_organisation_usage(call: Call, organisation: str) -> OrganisationUsage:
    """Show what an organisation uses over all its projects, and its quota.

    By id or name. Only operators can see other organisations than their own.
    """
    return _usage(call, call.nouns.tenants.organisations.find(call.actor, organisation))


@routes.put(
    "/v1/organisations/{organisation}/quota",
    scope=Scope.INSTALLATION,
    may=Permission.ORGANISATION_WRITE,
    errors=("unknown_name",),
)
def set_organisation_quota(
    call: Call, organisation: str, body: OrganisationQuotaRequest
) -> OrganisationUsage:
    """Set the most an organisation can have at a time, over all its projects.

    Existing usage above the quota stays, but cannot grow. For operators.
    """
    quota = organisation_quota_from(body)
    return _usage(call, call.nouns.tenants.organisations.set_quota(call.actor, organisation, quota))


def _usage(call: Call, found: Organisation) -> OrganisationUsage:
    used = call.nouns.instances.usage_of_organisation(found.id)
    return organisation_usage(found, used, call.nouns.tenants.organisations.quota(found.id))


@routes.put("/v1/projects/{project}/quota", errors=("unknown_name",))
def set_quota(call: Call, project: str, body: QuotaRequest) -> ProjectAnswer:
    """Set the most a project can have at a time.

    For owners of the organisation, within its quota, and for operators.
    """
    quota = quota_from(body)
    return project_answer(call.nouns.tenants.projects.set_quota(call.actor, call.project.id, quota))


@routes.get("/v1/projects/{project}/usage")
def show_usage(call: Call, project: str) -> UsageAnswer:
    """Show what a project uses and its quota, with those of the organisation if you may see them."""
    return usage_answer(call.nouns.instances.usage(call.project.id), call.project.quota, _whole(call))


def _whole(call: Call) -> OrganisationUsage | None:
    home = call.project.organisation_id
    if Permission.USAGE_READ not in in_organisation(call.actor, home):
        return None
    organisations = call.nouns.tenants.organisations
    return organisation_usage(
        organisations.find(call.actor, home),
        call.nouns.instances.usage_of_organisation(home),
        organisations.quota(home),
    )
