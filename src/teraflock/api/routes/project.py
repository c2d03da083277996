"""Projects, their quotas and what they use."""

from teraflock.api.call import Call, cut
from teraflock.api.convert.tenant import organisation_usage, project_answer, quota_from, usage_answer
from teraflock.api.query import InOrganisation, PageInOrganisation
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission, in_organisation
from teraflock.wire.tenant import (
    OrganisationUsage,
    ProjectAnswer,
    ProjectPage,
    ProjectRequest,
    QuotaShape,
    UsageAnswer,
)

routes = Routes("projects")


@routes.get("/v1/projects", scope=Scope.ANYWHERE, may=Permission.PROJECT_READ)
def list_projects(call: Call, query: PageInOrganisation) -> ProjectPage:
    """The projects the key reaches."""
    found = call.nouns.tenants.projects.page(
        call.actor, organisation=call.home(query.organisation), after=query.after, limit=query.limit + 1
    )
    rows, last = cut(found, query.limit)
    return ProjectPage(items=tuple(map(project_answer, rows)), next=last.id if last else None)


@routes.post(
    "/v1/projects",
    scope=Scope.ORGANISATION,
    may=Permission.PROJECT_WRITE,
    status=201,
    creates=True,
    errors=("quota_reached", "suspended", "unknown_name"),
)
def make_project(call: Call, query: InOrganisation, body: ProjectRequest) -> ProjectAnswer:
    """Make a project.

    It counts against the organisation's quota. Its own quota lies within that; limits that are left out are those of
    new projects. It gets a network with its first instance.
    """
    projects = call.nouns.tenants.projects
    return project_answer(
        projects.make(
            call.actor, body.name, quota_from(body.quota), organisation=call.home(query.organisation)
        )
    )


@routes.get("/v1/projects/{project}", scope=Scope.PROJECT, may=Permission.PROJECT_READ)
def show_project(call: Call, project: str) -> ProjectAnswer:
    """One project, by id or name."""
    return project_answer(call.project)


@routes.delete("/v1/projects/{project}", scope=Scope.PROJECT, may=Permission.PROJECT_WRITE, status=204)
def delete_project(call: Call, project: str) -> None:
    """Delete a project in which nothing is left."""
    call.nouns.tenants.projects.remove(call.actor, call.project.id)


@routes.put(
    "/v1/projects/{project}/quota",
    scope=Scope.PROJECT,
    may=Permission.QUOTA_WRITE,
    errors=("unknown_name",),
)
def set_quota(call: Call, project: str, body: QuotaShape) -> ProjectAnswer:
    """Set the most a project may have at a time.

    For owners of the organisation, within its quota, and for operators.
    """
    quota = quota_from(body)
    return project_answer(call.nouns.tenants.projects.set_quota(call.actor, call.project.id, quota))


@routes.get("/v1/projects/{project}/usage", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def show_usage(call: Call, project: str) -> UsageAnswer:
    """What a project uses, and its quota; the organisation's too, for those who may see it."""
    return usage_answer(call.nouns.instances.usage(call.project.id), call.project.quota, _whole(call))


def _whole(call: Call) -> OrganisationUsage | None:
    home = call.project.organisation_id
    if Permission.USAGE_READ not in in_organisation(call.actor, home):
        return None
    organisations = call.nouns.tenants.organisations
    return organisation_usage(
        organisations.called(call.actor, home),
        call.nouns.instances.usage_of_organisation(home),
        organisations.quota(home),
    )
