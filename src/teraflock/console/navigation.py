"""The sections in the navigation, in order. A section is shown to those who may open its page."""

from typing import Final

import msgspec

from teraflock.tenant import rules
from teraflock.tenant.admission import Scope
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.rules import Permission


class Section(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    path: str
    """Below `PREFIX`; `{project}` is replaced."""
    scope: Scope
    may: Permission | None = None
    apart: bool = False
    """Begins a new group."""


SECTIONS: Final = (
    Section(
        name="instances",
        title="Instances",
        path="/projects/{project}/instances",
        scope=Scope.PROJECT,
        may=Permission.INSTANCE_READ,
    ),
    Section(
        name="runs",
        title="Runs",
        path="/projects/{project}/runs",
        scope=Scope.PROJECT,
        may=Permission.INSTANCE_READ,
    ),
    Section(
        name="queue",
        title="Queue",
        path="/projects/{project}/queue",
        scope=Scope.PROJECT,
        may=Permission.INSTANCE_READ,
    ),
    Section(
        name="storage",
        title="Storage",
        path="/projects/{project}/volumes",
        scope=Scope.PROJECT,
        may=Permission.INSTANCE_READ,
    ),
    Section(
        name="networks",
        title="Networks",
        path="/projects/{project}/networks",
        scope=Scope.PROJECT,
        may=Permission.NETWORK_READ,
    ),
    Section(name="offers", title="Offers", path="/offers", scope=Scope.KEY, apart=True),
    Section(name="plan", title="Plan", path="/plan", scope=Scope.KEY),
    Section(
        name="costs",
        title="Costs",
        path="/projects/{project}/costs",
        scope=Scope.PROJECT,
        may=Permission.USAGE_READ,
    ),
    Section(name="learn", title="Learn", path="/learn", scope=Scope.KEY, apart=True),
    Section(name="team", title="Team", path="/team", scope=Scope.KEY),
    Section(
        name="hosts", title="Hosts", path="/hosts", scope=Scope.INSTALLATION, may=Permission.HOST_READ, apart=True
    ),
    Section(
        name="alerts", title="Alerts", path="/alerts", scope=Scope.INSTALLATION, may=Permission.HOST_READ
    ),
    Section(
        name="clouds", title="Clouds", path="/clouds", scope=Scope.INSTALLATION, may=Permission.HOST_READ
    ),
)  # fmt: skip


def sections_for(actor: Actor, project: Project | None) -> tuple[Section, ...]:
    return tuple(each for each in SECTIONS if _is_open(each, actor, project))


def _is_open(section: Section, actor: Actor, project: Project | None) -> bool:
    if section.may is None:
        return True
    if section.scope == Scope.PROJECT:
        return project is not None and section.may in rules.in_project(actor, project)
    if section.scope == Scope.ANYWHERE:
        return section.may in rules.anywhere(actor)
    return section.may in rules.in_organisation(actor, actor.organisation_id)
