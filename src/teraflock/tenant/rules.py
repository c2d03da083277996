"""Who may do what: the one table from role to permissions, and how a key narrows it.

What holds:
- roles are sets of permissions and nothing else: two of them meet in the permissions both have;
- what an actor may in a project is (his roles there and in the whole organisation) cut by his key's role, and
  nothing outside his key's project;
- a project of another organisation gives nothing to anyone but an operator.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from teraflock.base.errors import Forbidden
from teraflock.tenant.model import Actor, OrganisationId, Project, Role


class Permission(StrEnum):
    INSTANCE_READ = "instance.read"
    INSTANCE_WRITE = "instance.write"
    INSTANCE_ENTER = "instance.enter"
    """Whatever shows or changes the inside: commands, keys for SSH, logs, the token of Jupyter."""
    INSTANCE_OPERATE = "instance.operate"
    """Stop, start, delete and read the log of any tenant's instance, with a reason that the tenant sees."""
    IMAGE_READ = "image.read"
    IMAGE_WRITE = "image.write"
    PROJECT_READ = "project.read"
    PROJECT_WRITE = "project.write"
    QUOTA_WRITE = "quota.write"
    """Quotas of projects, held in the whole organisation. The organisation's own is `organisation.write`."""
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
    PURCHASE_WRITE = "purchase.write"
    """Months and years of an instance, paid ahead. Who lacks it may buy up to a limit that an owner set for him."""
    HOST_READ = "host.read"
    HOST_WRITE = "host.write"
    ORGANISATION_READ = "organisation.read"
    """Which organisations there are. One's own is known to all its members."""
    ORGANISATION_WRITE = "organisation.write"


NOTHING: Final = frozenset[Permission]()
EVERYTHING: Final = frozenset(Permission)

_HOUSE: Final = frozenset(
    {
        Permission.INSTANCE_OPERATE,
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
    Permission.PURCHASE_WRITE,
}
"""In every project of every organisation: all but the inside of what tenants run. Who needs that takes a role there."""


_WITH_REASON: Final = (Permission.INSTANCE_WRITE, Permission.INSTANCE_ENTER)


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


def projects_in(actor: Actor, permission: Permission, organisation: OrganisationId) -> tuple[str, ...] | None:
    """As `projects_with`, in any organisation: in another than his own it is all of it, or an error."""
    if organisation == actor.organisation_id:
        return projects_with(actor, permission)
    check_held(permission, in_organisation(actor, organisation))
    return None


def require(actor: Actor, permission: Permission, project: Project | None) -> None:
    """Raise unless the actor may do this in the project; None: in the whole of his organisation, or the house."""
    held = in_project(actor, project) if project else in_organisation(actor, actor.organisation_id)
    if permission not in held and actor.is_operator and permission in _WITH_REASON:
        raise Forbidden(
            f"An operator's key may `{permission}` in project `{project.name if project else ''}` only with a reason",
            hint="`tera stop`, `start`, `delete` and `logs` take `--reason TEXT`, which the tenant sees;"
            " in the API: `/v1/operator/instances`",
        )
    check_held(permission, held, f" in project `{project.name}`" if project else "")


def check_held(permission: Permission, held: frozenset[Permission], where: str = "") -> None:
    if permission not in held:
        raise forbidden(permission, where)


def forbidden(permission: Permission, where: str = "") -> Forbidden:
    more = (
        "only operators may do this" if permission in _HOUSE else "an owner of the organisation can give more"
    )
    return Forbidden(
        f"This key may not `{permission}`{where}", hint=f"`tera whoami` shows what it may; {more}"
    )


def may_give(actor: Actor, role: Role, held: frozenset[Permission]) -> bool:
    """Whether an actor who holds this much somewhere may give a role there, or take it away."""
    return Permission.MEMBER_WRITE in held and (actor.is_operator or PERMISSIONS[role] <= held)


def _of(role: Role | None) -> frozenset[Permission]:
    return PERMISSIONS[role] if role else NOTHING


def _capped(actor: Actor, held: frozenset[Permission]) -> frozenset[Permission]:
    return held if actor.role_max is None else held & PERMISSIONS[actor.role_max]
