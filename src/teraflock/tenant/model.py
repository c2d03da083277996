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
    """All there is in the organisation: members, keys, projects, quotas."""
    MEMBER = "member"
    """Launches, changes and deletes instances."""
    VIEWER = "viewer"
    """Sees everything but secrets, changes nothing."""
    BILLING = "billing"
    """Sees what was used and what it costs, and nothing inside instances."""


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """The most a project may have at a time. None is no limit."""

    instances: int | None = None
    vcpus: int | None = None
    ram_bytes: int | None = None
    disk_bytes: int | None = None
    gpus: Mapping[str, int] = {}
    """By the catalog's id of the card; a card that is not named here is limited by `gpus_default`."""
    gpus_default: int | None = None


class Organisation(msgspec.Struct, frozen=True, kw_only=True):
    id: OrganisationId
    name: str
    created_at: datetime


class Project(msgspec.Struct, frozen=True, kw_only=True):
    id: ProjectId
    organisation_id: OrganisationId
    name: str
    quota: Quota
    network_number: int
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
    roles: Mapping[str, Role]
    """By project id, narrowed by the key; the empty id stands for every project of the organisation."""
