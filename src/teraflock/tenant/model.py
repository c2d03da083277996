"""Organisations, projects, members, keys: who asks, and how far they reach."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NewType

import msgspec

OrganisationId = NewType("OrganisationId", str)
ProjectId = NewType("ProjectId", str)
MemberId = NewType("MemberId", str)
KeyId = NewType("KeyId", str)


class Role(StrEnum):
    OWNER = "owner"
    """All there is in the organisation, or in one project of it: members, keys, projects, quotas of projects.

    The quota of the organisation is the operator's.
    """
    MEMBER = "member"
    """Launches, changes and deletes instances."""
    VIEWER = "viewer"
    """Sees everything but secrets and bills, changes nothing."""
    BILLING = "billing"
    """Sees what was used and what it costs, and nothing inside instances."""


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """The most a project may have at a time. None is no limit."""

    instances: int | None = None
    vcpus: int | None = None
    ram_bytes: int | None = None
    disk_bytes: int | None = None
    images_bytes: int | None = None
    gpus: Mapping[str, int] = {}
    """By the catalog's id of the card; a card that is not named here is limited by `gpus_default`."""
    gpus_default: int | None = None


class OrganisationQuota(Quota, frozen=True, kw_only=True):
    """The most an organisation may have at a time, over all its projects. None is no limit."""

    projects: int | None = None


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """Quotas of what is new, unless others are given."""

    organisation: OrganisationQuota = OrganisationQuota()
    project: Quota = Quota()


class OrganisationState(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    """Its instances are stopped. Members may read, delete and export; nothing starts, and no key is made."""
    DELETING = "deleting"
    """As suspended, while its instances and images are deleted."""
    DELETED = "deleted"
    """Nobody can log in. Its bills and its audit log stay."""


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
    """Which part of the address range is its own; below 0: none, until its first instance is launched."""
    created_at: datetime


class Member(msgspec.Struct, frozen=True, kw_only=True):
    id: MemberId
    organisation_id: OrganisationId
    name: str
    is_operator: bool
    roles: Mapping[str, Role]
    """By project id; the empty id stands for every project of the organisation."""
    created_at: datetime
    removed_at: datetime | None = None


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    id: KeyId
    member_id: MemberId
    name: str
    project_id: str
    """The one project it reaches; empty: all that its member does."""
    role_max: Role | None
    """It may do no more than this role."""
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever stands behind a request, as far as the key used reaches."""

    key_id: KeyId
    member_id: MemberId
    member_name: str
    organisation_id: OrganisationId
    is_operator: bool
    """An operator's key without any limit of its own: a limited one has only its member's roles."""
    roles: Mapping[str, Role]
    """The member's, by project id; the empty id stands for every project of the organisation."""
    project_id: str = ""
    """The one project the key reaches; empty: all that its member does."""
    role_max: Role | None = None
    """The key's cap. What the actor may is in rules.py alone: roles have no order, `billing` beside `viewer`."""
    expires_at: datetime | None = None
    """The key's: no key made with it lives longer."""


class By(msgspec.Struct, frozen=True, kw_only=True):
    """Who does something, and in which project; None: in no single one."""

    actor: Actor
    project: Project | None = None


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    installation_id: str
    secret: str | None
    """The operator's key, where the house was made just now."""


class MadeKey(msgspec.Struct, frozen=True, kw_only=True):
    key: ApiKey
    secret: str
    """Kept nowhere: whoever made the key is told this once."""


class MadeOrganisation(msgspec.Struct, frozen=True, kw_only=True):
    organisation: Organisation
    project: Project
    owner: Member
    key: MadeKey


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """What operators tell tenants."""

    id: str
    text: str
    organisation_id: str
    """Whom it is for; empty: all."""
    created_at: datetime
    until: datetime | None
    """None: until it is removed."""


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what, written in the transaction that did it."""

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
    """The name of who did it, as it is read; it is not kept."""
