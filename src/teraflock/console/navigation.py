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


def _of_project(name: str, may: Permission, *, at: str = "") -> Section:
    path = f"/projects/{{project}}/{at or name}"
    return Section(name=name, title=name.capitalize(), path=path, scope=Scope.PROJECT, may=may)


def _of_user(name: str, *, apart: bool = False) -> Section:
    return Section(name=name, title=name.capitalize(), path=f"/{name}", scope=Scope.KEY, apart=apart)


def _of_operator(name: str, *, apart: bool = False) -> Section:
    return Section(
        name=name,
        title=name.capitalize(),
        path=f"/{name}",
        scope=Scope.INSTALLATION,
        may=Permission.HOST_READ,
        apart=apart,
    )


SECTIONS: Final = (
    _of_project("instances", Permission.INSTANCE_READ),
    _of_project("runs", Permission.INSTANCE_READ),
    _of_project("queue", Permission.INSTANCE_READ),
    _of_project("storage", Permission.INSTANCE_READ, at="volumes"),
    _of_project("networks", Permission.NETWORK_READ),
    _of_user("offers", apart=True),
    _of_user("plan"),
    _of_project("costs", Permission.USAGE_READ),
    _of_user("learn", apart=True),
    _of_user("team"),
    _of_operator("hosts", apart=True),
    _of_operator("alerts"),
    _of_operator("clouds"),
)


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
