"""Members and their roles as text."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from teraflock.words.table import Field, Fields
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.member import MemberAnswer


def fields(projects: Mapping[str, str]) -> "Fields[MemberAnswer]":
    """`projects` maps ids to names."""
    return (
        Field("MEMBER", lambda each: each.name, flexible=True),
        Field("ROLES", lambda each: member_roles_text(each, projects), flexible=True),
        Field("ID", lambda each: each.id, worth=5),
        Field("SINCE (UTC)", lambda each: time_text(each.created_at), worth=4),
    )


def member_roles_text(member: "MemberAnswer", projects: Mapping[str, str]) -> str:
    roles = roles_text(member.roles, projects)
    return ", ".join(filter(None, ["operator" if member.is_operator else "", roles])) or "without a role"


def roles_text(roles: Mapping[str, str], projects: Mapping[str, str]) -> str:
    """`owner in every project, viewer in speech`. `projects` maps ids to names."""
    return ", ".join(
        f"{role} in {projects.get(project, project) or 'every project'}" for project, role in roles.items()
    )
