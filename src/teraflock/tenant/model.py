"""Values of this folder: organisations, projects, members, keys, quotas, audit rows."""

from collections.abc import Mapping, Set
from datetime import datetime
from enum import StrEnum
from typing import Final, NewType

import msgspec

OrganisationId = NewType("OrganisationId", str)
ProjectId = NewType("ProjectId", str)
NO_PROJECT: Final = ProjectId("")
"""In place of a project: all of them, or none."""
MemberId = NewType("MemberId", str)
KeyId = NewType("KeyId", str)


class Role(StrEnum):
    OWNER = "owner"
    """Everything in the organisation, or in one of its projects: members, keys, projects, quotas of projects.

    Only the operator sets the quota of the organisation.
    """
    MEMBER = "member"
    """Launches, changes and deletes instances."""
    VIEWER = "viewer"
    """Sees everything except secrets and bills, and changes nothing."""
    BILLING = "billing"
    """Sees usage and costs, and nothing inside instances."""


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a project may hold at a time. None is no limit."""

    instances: int | None = None
    vcpus: int | None = None
    ram_bytes: int | None = None
    disk_bytes: int | None = None
    images_bytes: int | None = None
    data_bytes: int | None = None
    """Datasets."""
    ports: int | None = None
    """Published ports."""
    addresses: int | None = None
    """Public addresses."""
    networks: int | None = None
    gpus: Mapping[str, int] = {}
    """By the catalog's id of the GPU model. Other GPU models are limited by `gpus_default`."""
    gpus_default: int | None = None


class OrganisationQuota(Quota, frozen=True, kw_only=True):
    """The most that an organisation may hold at a time, over all its projects. None is no limit."""

    projects: int | None = None


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """Quotas of new projects and organisations, unless the request sets others."""

    organisation: OrganisationQuota = OrganisationQuota()
    project: Quota = Quota()


class OrganisationState(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    """Its instances are stopped. Members can read, delete and export. Nothing starts, and no keys are created."""
    DELETING = "deleting"
    """Like suspended, while its instances and images are deleted."""
    DELETED = "deleted"
    """Nobody can log in. Its bills and its audit log are kept."""


ORGANISATION_MOVES: Final[Mapping[OrganisationState, Set[OrganisationState]]] = {
    OrganisationState.ACTIVE: {OrganisationState.SUSPENDED, OrganisationState.DELETING},
    OrganisationState.SUSPENDED: {
        OrganisationState.ACTIVE,
        OrganisationState.SUSPENDED,  # for another reason
        OrganisationState.DELETING,
    },
    OrganisationState.DELETING: {OrganisationState.DELETING, OrganisationState.DELETED},
    OrganisationState.DELETED: frozenset(),
}


class Organisation(msgspec.Struct, frozen=True, kw_only=True):
    id: OrganisationId
    name: str
    created_at: datetime
    state: OrganisationState = OrganisationState.ACTIVE
    state_reason: str = ""
    """Why the operator suspended or deleted it."""
    state_since: datetime | None = None


class Project(msgspec.Struct, frozen=True, kw_only=True):
    id: ProjectId
    organisation_id: OrganisationId
    name: str
    quota: Quota
    network_number: int
    """The number of its network `default`. Below 0: it has none, because nothing was launched yet."""
    created_at: datetime


class Member(msgspec.Struct, frozen=True, kw_only=True):
    id: MemberId
    organisation_id: OrganisationId
    name: str
    is_operator: bool
    roles: Mapping[str, Role]
    """By project id. The empty id means every project of the organisation."""
    created_at: datetime
    removed_at: datetime | None = None


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    id: KeyId
    member_id: MemberId
    name: str
    project_id: str
    """The only project that the key can access. Empty: all projects of its member."""
    role_max: Role | None
    """The role that limits the key."""
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """The member who makes a request, with the limits of the key in use."""

    key_id: KeyId
    member_id: MemberId
    member_name: str
    organisation_id: OrganisationId
    is_operator: bool
    """True only for an operator's key without limits. A limited key has only the roles of its member."""
    roles: Mapping[str, Role]
    """The member's roles, by project id. The empty id means every project of the organisation."""
    project_id: str = ""
    """The only project that the key can access. Empty: all projects of its member."""
    role_max: Role | None = None
    """The key's limit. Only rules.py decides what an actor may do: roles have no order."""
    expires_at: datetime | None = None
    """When the key expires. Keys created with it expire no later."""


class By(msgspec.Struct, frozen=True, kw_only=True):
    """Who acts, and in which project. None: not in a single project."""

    actor: Actor
    project: Project | None = None


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    installation_id: str
    secret: str | None
    """The operator's key, if the installation was created just now."""


class MadeKey(msgspec.Struct, frozen=True, kw_only=True):
    key: ApiKey
    secret: str
    """Shown once and not stored."""


class NewOrganisation(msgspec.Struct, frozen=True, kw_only=True):
    organisation: Organisation
    project: Project
    owner: Member


class MadeOrganisation(msgspec.Struct, frozen=True, kw_only=True):
    organisation: Organisation
    project: Project
    owner: Member
    key: MadeKey


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """A message from operators to tenants."""

    id: str
    text: str
    organisation_id: str
    """The organisation it is for. Empty: all."""
    created_at: datetime
    until: datetime | None
    """None: until it is removed."""


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what. Written in the transaction that made the change."""

    id: str
    at: datetime
    organisation_id: OrganisationId
    project_id: str
    key_id: str
    member_id: str
    action: str
    subject: str
    details: Mapping[str, str | int | float | bool | None]
    member: str = ""
    """The actor's name. Looked up on reading, not stored."""
