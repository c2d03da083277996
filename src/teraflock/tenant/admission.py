"""Where a permission must be held, and the check of it. The API and the console share both."""

from enum import StrEnum

from teraflock.tenant import rules
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.project.service import ProjectService
from teraflock.tenant.rules import Permission


class Scope(StrEnum):
    """Where the permission must be held."""

    PUBLIC = "public"
    """Nowhere: no key is needed."""
    KEY = "key"
    """Nowhere, but a valid key or session is needed. The service shows each its own data."""
    ANYWHERE = "anywhere"
    """In at least one project. The service shows only those projects."""
    ORGANISATION = "organisation"
    PROJECT = "project"
    """In the project of the request: from the path, the query, or the key."""
    INSTALLATION = "installation"
    """In the whole installation: the operator has it."""


def admitted_project(
    projects: ProjectService,
    actor: Actor,
    scope: Scope,
    may: Permission,
    ref: str | None,
    *,
    removed: bool = False,
) -> Project | None:
    """The project of a request, after the check of the permission; None: the scope is not a project.

    With `removed`, operators also find removed projects, whose bills are kept.
    """
    if scope == Scope.PROJECT:
        project = projects.show(actor, ref, removed=removed)
        rules.require(actor, may, project)
        return project
    if scope == Scope.ANYWHERE:
        rules.check_held(may, rules.anywhere(actor))
    else:
        rules.require(actor, may, None)
    return None
