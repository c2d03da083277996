"""Projects."""

from teraflock.api.call import Call, cut
from teraflock.api.convert.project import project_answer
from teraflock.api.convert.quota import quota_from
from teraflock.api.query import InOrganisation, PageInOrganisation
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.project import ProjectAnswer, ProjectPage, ProjectRequest

routes = Routes("projects", scope=Scope.PROJECT, read=Permission.PROJECT_READ, write=Permission.PROJECT_WRITE)


@routes.get("/v1/projects", scope=Scope.ANYWHERE, may=Permission.PROJECT_READ)
def list_projects(call: Call, query: PageInOrganisation) -> ProjectPage:
    """List the projects that the key has access to."""
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
    """Create a project.

    It counts against the quota of the organisation, and its own quota cannot exceed that. Limits that you leave out get
    the default for new projects. The project gets a network with its first instance.
    """
    projects = call.nouns.tenants.projects
    return project_answer(
        projects.make(
            call.actor, body.name, quota_from(body.quota), organisation=call.home(query.organisation)
        )
    )


@routes.get("/v1/projects/{project}")
def show_project(call: Call, project: str) -> ProjectAnswer:
    """Show one project, by id or name."""
    return project_answer(call.project)


@routes.delete("/v1/projects/{project}", status=204)
def delete_project(call: Call, project: str) -> None:
    """Delete an empty project."""
    call.nouns.tenants.projects.remove(call.actor, call.project.id)
