"""Who may do what: the one table from role to permissions, and how a key narrows it.

What holds:
- roles are sets of permissions and nothing else: two of them meet in the permissions both have;
- what an actor may in a project is (his roles there and in the whole organisation) cut by his key's role, and
  nothing outside his key's project;
- a project of another organisation gives nothing to anyone but an operator;
- a key made with a key lies within it: no other project, no role beyond, no longer life. The limits are compared
  and not what they allow today, for a role given later would widen the one key and not the other.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from teraflock.base.errors import BadInput, Forbidden
from teraflock.tenant.model import Actor, OrganisationId, Project, Role


class Permission(StrEnum):
    INSTANCE_READ = "instance.read"
    INSTANCE_WRITE = "instance.write"
    INSTANCE_ENTER = "instance.enter"
    """Whatever shows or changes the inside: commands, keys for SSH, logs, the token of Jupyter."""
    IMAGE_READ = "image.read"
    IMAGE_WRITE = "image.write"
    PROJECT_READ = "project.read"
    PROJECT_WRITE = "project.write"
    QUOTA_WRITE = "quota.write"
    MEMBER_READ = "member.read"
    MEMBER_WRITE = "member.write"
    KEY_READ = "key.read"
    """One's own keys; with `member.write` in the whole organisation, everyone's."""
    KEY_WRITE = "key.write"
    """As with `key.read`."""
    AUDIT_READ = "audit.read"
    USAGE_READ = "usage.read"
    BILL_READ = "bill.read"
    """Invoices and the ledger. What was used is `usage.read`."""
    BILL_WRITE = "bill.write"
    """Prices and corrections: the house's, never the tenant's."""
    HOST_READ = "host.read"
    HOST_WRITE = "host.write"
    ORGANISATION_READ = "organisation.read"
    """Which organisations there are. One's own is known to all its members."""
    ORGANISATION_WRITE = "organisation.write"


NOTHING: Final = frozenset[Permission]()
EVERYTHING: Final = frozenset(Permission)

_HOUSE: Final = frozenset(
    {
        Permission.QUOTA_WRITE,
        Permission.BILL_WRITE,
        Permission.HOST_READ,
        Permission.HOST_WRITE,
        Permission.ORGANISATION_READ,
        Permission.ORGANISATION_WRITE,
    }
)
"""No role has these."""

_VIEWER: Final = frozenset(
    {
        Permission.INSTANCE_READ,
        Permission.IMAGE_READ,
        Permission.PROJECT_READ,
        Permission.MEMBER_READ,
        Permission.KEY_READ,
        Permission.AUDIT_READ,
        Permission.USAGE_READ,
    }
)

PERMISSIONS: Final[Mapping[Role, frozenset[Permission]]] = {
    Role.OWNER: EVERYTHING - _HOUSE,
    Role.MEMBER: _VIEWER
    | {
        Permission.INSTANCE_WRITE,
        Permission.INSTANCE_ENTER,
        Permission.IMAGE_WRITE,
        Permission.KEY_WRITE,
    },
    Role.VIEWER: _VIEWER,
    Role.BILLING: frozenset(
        {Permission.PROJECT_READ, Permission.USAGE_READ, Permission.BILL_READ, Permission.KEY_READ}
    ),
}

OPERATOR: Final = EVERYTHING - {
    Permission.INSTANCE_WRITE,
    Permission.INSTANCE_ENTER,
    Permission.IMAGE_WRITE,
}
"""In every project of every organisation: all but the inside of what tenants run. Who needs that takes a role there."""


def in_project(actor: Actor, project: Project) -> frozenset[Permission]:
    """All that the actor may in one project."""
    of_house = OPERATOR if actor.is_operator else NOTHING
    if project.organisation_id != actor.organisation_id:
        return of_house
    if actor.project_id and actor.project_id != project.id:
        return of_house
    return of_house | _capped(actor, _of(actor.roles.get("")) | _of(actor.roles.get(project.id)))


def in_organisation(actor: Actor, organisation: OrganisationId) -> frozenset[Permission]:
    """All that the actor may in every project of an organisation, and with its members."""
    of_house = OPERATOR if actor.is_operator else NOTHING
    if organisation != actor.organisation_id or actor.project_id:
        return of_house
    return of_house | _capped(actor, _of(actor.roles.get("")))


def anywhere(actor: Actor) -> frozenset[Permission]:
    """All that the actor may in at least one project of his organisation."""
    found = OPERATOR if actor.is_operator else NOTHING
    for project_id, role in actor.roles.items():
        if not project_id or not actor.project_id or project_id == actor.project_id:
            found |= _capped(actor, PERMISSIONS[role])
    return found


def projects_with(actor: Actor, permission: Permission) -> tuple[str, ...] | None:
    """The ids of the projects where the actor has a permission; None: in all of his organisation."""
    if permission in in_organisation(actor, actor.organisation_id):
        return None
    if permission in _capped(actor, _of(actor.roles.get(""))):
        return (actor.project_id,)  # his in all of them, but for his key
    return tuple(
        sorted(
            project_id
            for project_id, role in actor.roles.items()
            if permission in _capped(actor, PERMISSIONS[role])
            and (not actor.project_id or project_id == actor.project_id)
        )
    )


def require(actor: Actor, permission: Permission, project: Project | None) -> None:
    """Raise unless the actor may do this in the project; None: in the whole of his organisation, or the house."""
    held = in_project(actor, project) if project else in_organisation(actor, actor.organisation_id)
    if permission not in held:
        raise forbidden(permission, f" in project `{project.name}`" if project else "")


def forbidden(permission: Permission, where: str = "") -> Forbidden:
    return Forbidden(
        f"This key may not `{permission}`{where}",
        hint="`tera whoami` shows what it may; an owner of the organisation can give more",
    )


def may_give(actor: Actor, role: Role, held: frozenset[Permission]) -> bool:
    """Whether an actor who holds this much somewhere may give a role there, or take it away."""
    return Permission.MEMBER_WRITE in held and (actor.is_operator or PERMISSIONS[role] <= held)


def within(role: Role | None, limit: Role | None) -> bool:
    """Whether one cap lies within another; None is no cap."""
    return limit is None or (role is not None and PERMISSIONS[role] <= PERMISSIONS[limit])


def key_within(
    actor: Actor, project_id: str, role_max: Role | None, expires_at: datetime | None
) -> str | None:
    """The first limit of the actor's own key that a key with these would leave, in words; None: it keeps them all."""
    if actor.project_id and project_id != actor.project_id:
        return "reach the same project"
    if not within(role_max, actor.role_max):
        return f"do no more than `{actor.role_max}`"
    if actor.expires_at and (expires_at is None or expires_at > actor.expires_at):
        return f"last no longer than {actor.expires_at:%Y-%m-%d %H:%M} UTC"
    return None


NAME_CHARACTERS_MAX: Final = 63  # a label of a host name
MEMBER_CHARACTERS_MAX: Final = 255
KEY_CHARACTERS_MAX: Final = 100
NETWORKS_MAX: Final = 2_048
"""Each project has one; their numbers begin at 0. As many as network/rules.py has room for, held equal by a test."""
PAGE_ROWS_MAX: Final = 200

_LABEL: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


def check_name(kind: str, name: str) -> None:
    if len(name) > NAME_CHARACTERS_MAX or not _LABEL.fullmatch(name):
        raise BadInput(
            f"`{_shown(name)}` cannot be the name of {kind}",
            hint=f"Up to {NAME_CHARACTERS_MAX} of `a-z`, `0-9` and `-`, with a letter first and no `-` last",
        )


def check_member_name(name: str) -> None:
    if (
        not 0 < len(name) <= MEMBER_CHARACTERS_MAX
        or not name.isprintable()
        or " " in name
        or name.startswith("mem_")
    ):
        raise BadInput(
            f"`{_shown(name)}` cannot be the name of a member",
            hint="An e-mail address or a short name without spaces; `mem_` begins the ids of members",
        )


def check_key_name(name: str) -> None:
    if not 0 < len(name) <= KEY_CHARACTERS_MAX or not name.isprintable():
        raise BadInput(
            f"`{_shown(name)}` cannot be the name of a key",
            hint=f"Up to {KEY_CHARACTERS_MAX} characters that can be printed",
        )


def _shown(name: str) -> str:
    return ascii(name[:NAME_CHARACTERS_MAX])[1:-1]


def _of(role: Role | None) -> frozenset[Permission]:
    return PERMISSIONS[role] if role else NOTHING


def _capped(actor: Actor, held: frozenset[Permission]) -> frozenset[Permission]:
    return held if actor.role_max is None else held & PERMISSIONS[actor.role_max]
