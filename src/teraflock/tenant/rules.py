"""Permissions: which role has which, and how a key limits them.

Invariants:
- a role is a set of permissions; combining two roles is a union or an intersection of sets;
- in a project, an actor has the permissions of the member's roles there and in the whole organisation, reduced to
  those of the key's role, and none outside the key's project;
- only an operator has permissions in a project of another organisation.
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
    """Anything that shows or changes the inside of an instance: commands, SSH keys, logs, the Jupyter token."""
    INSTANCE_OPERATE = "instance.operate"
    """Stop, start and delete any tenant's instance and read its log, with a reason that the tenant sees."""
    IMAGE_READ = "image.read"
    IMAGE_WRITE = "image.write"
    NETWORK_READ = "network.read"
    NETWORK_WRITE = "network.write"
    """Networks and security groups: what may reach instances, and what they may reach."""
    NETWORK_PEER = "network.peer"
    """Connect a network with one of another project."""
    PROJECT_READ = "project.read"
    PROJECT_WRITE = "project.write"
    QUOTA_WRITE = "quota.write"
    """Quotas of projects; needs a role in the whole organisation. The organisation's quota is `organisation.write`."""
    MEMBER_READ = "member.read"
    MEMBER_WRITE = "member.write"
    KEY_READ = "key.read"
    """The member's own keys; with `member.write` in the whole organisation, all keys."""
    KEY_WRITE = "key.write"
    """Like `key.read`."""
    AUDIT_READ = "audit.read"
    USAGE_READ = "usage.read"
    BILL_READ = "bill.read"
    """Invoices and the ledger. Usage is `usage.read`."""
    BILL_WRITE = "bill.write"
    """Prices and corrections. Operators only."""
    PURCHASE_WRITE = "purchase.write"
    """Months and years of an instance, paid ahead. Members without it can buy up to a limit that an owner set."""
    HOST_READ = "host.read"
    HOST_WRITE = "host.write"
    ORGANISATION_READ = "organisation.read"
    """All organisations. Every member may see their own."""
    ORGANISATION_WRITE = "organisation.write"


NOTHING: Final = frozenset[Permission]()
EVERYTHING: Final = frozenset(Permission)

_OPERATOR_ONLY: Final = frozenset(
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
        Permission.NETWORK_READ,
        Permission.PROJECT_READ,
        Permission.MEMBER_READ,
        Permission.KEY_READ,
        Permission.AUDIT_READ,
        Permission.USAGE_READ,
    }
)

PERMISSIONS: Final[Mapping[Role, frozenset[Permission]]] = {
    Role.OWNER: EVERYTHING - _OPERATOR_ONLY,
    Role.MEMBER: _VIEWER
    | {
        Permission.INSTANCE_WRITE,
        Permission.INSTANCE_ENTER,
        Permission.IMAGE_WRITE,
        Permission.NETWORK_WRITE,
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
    Permission.NETWORK_WRITE,
    Permission.NETWORK_PEER,
    Permission.PURCHASE_WRITE,
}
"""What operators may do in all projects: everything except the inside of instances, which needs a role there."""


_WITH_REASON: Final = (Permission.INSTANCE_WRITE, Permission.INSTANCE_ENTER)


def in_project(actor: Actor, project: Project) -> frozenset[Permission]:
    """All permissions of the actor in one project."""
    as_operator = OPERATOR if actor.is_operator else NOTHING
    if project.organisation_id != actor.organisation_id:
        return as_operator
    if actor.project_id and actor.project_id != project.id:
        return as_operator
    return as_operator | _capped(actor, _of(actor.roles.get("")) | _of(actor.roles.get(project.id)))


def in_organisation(actor: Actor, organisation: OrganisationId) -> frozenset[Permission]:
    """All permissions of the actor in every project of an organisation, and for its members."""
    as_operator = OPERATOR if actor.is_operator else NOTHING
    if organisation != actor.organisation_id or actor.project_id:
        return as_operator
    return as_operator | _capped(actor, _of(actor.roles.get("")))


def anywhere(actor: Actor) -> frozenset[Permission]:
    """All permissions of the actor in at least one project of their organisation."""
    found = OPERATOR if actor.is_operator else NOTHING
    for project_id, role in actor.roles.items():
        if not project_id or not actor.project_id or project_id == actor.project_id:
            found |= _capped(actor, PERMISSIONS[role])
    return found


def projects_with(actor: Actor, permission: Permission) -> tuple[str, ...] | None:
    """The ids of the projects where the actor has a permission; None: all projects of their organisation."""
    if permission in in_organisation(actor, actor.organisation_id):
        return None
    if permission in _capped(actor, _of(actor.roles.get(""))):
        return (actor.project_id,)  # the member has it in all projects, but the key is limited to one
    return tuple(
        sorted(
            project_id
            for project_id, role in actor.roles.items()
            if permission in _capped(actor, PERMISSIONS[role])
            and (not actor.project_id or project_id == actor.project_id)
        )
    )


def projects_in(actor: Actor, permission: Permission, organisation: OrganisationId) -> tuple[str, ...] | None:
    """Like `projects_with`, for any organisation. In another organisation the result is all projects, or an error."""
    if organisation == actor.organisation_id:
        return projects_with(actor, permission)
    check_held(permission, in_organisation(actor, organisation))
    return None


def require(actor: Actor, permission: Permission, project: Project | None) -> None:
    """Raise unless the actor has the permission in the project; None: in the whole organisation or installation."""
    held = in_project(actor, project) if project else in_organisation(actor, actor.organisation_id)
    if permission not in held and actor.is_operator and permission in _WITH_REASON:
        raise Forbidden(
            f"An operator's key needs a reason for `{permission}` in project `{project.name if project else ''}`",
            hint="Add `--reason TEXT` to `tera stop`, `start`, `delete` or `logs`. The tenant sees it."
            " In the API, use `/v1/operator/instances`",
        )
    check_held(permission, held, f" in project `{project.name}`" if project else "")


def check_held(permission: Permission, held: frozenset[Permission], where: str = "") -> None:
    if permission not in held:
        raise forbidden(permission, where)


def forbidden(permission: Permission, where: str = "") -> Forbidden:
    more = (
        "only operators have this permission"
        if permission in _OPERATOR_ONLY
        else "an owner of the organisation can extend it"
    )
    return Forbidden(
        f"This key does not have the permission `{permission}`{where}",
        hint=f"`tera whoami` shows its permissions; {more}",
    )


def may_give(actor: Actor, role: Role, held: frozenset[Permission]) -> bool:
    """Whether an actor with these permissions may give or remove a role in the same place."""
    return Permission.MEMBER_WRITE in held and (actor.is_operator or PERMISSIONS[role] <= held)


def _of(role: Role | None) -> frozenset[Permission]:
    return PERMISSIONS[role] if role else NOTHING


def _capped(actor: Actor, held: frozenset[Permission]) -> frozenset[Permission]:
    return held if actor.role_max is None else held & PERMISSIONS[actor.role_max]
