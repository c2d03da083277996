"""Organisations, projects, members, keys, quotas and the audit log as the API has them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from teraflock.wire.instance import Name, Ref

RoleWord = Literal["owner", "member", "viewer", "billing"]
Amount = Annotated[int, Meta(ge=0, le=1 << 60)]
MemberName = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^\s\u0000-\u001f]+$(?!\n)")]


class QuotaShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most a project may have at a time; null is no limit."""

    instances: Amount | None = None
    vcpus: Amount | None = None
    ram_bytes: Amount | None = None
    disk_bytes: Amount | None = None
    """Disks of instances, with what their snapshots keep."""
    images_bytes: Amount | None = None
    """The project's own images."""
    gpus: Mapping[str, Amount] = {}
    gpus_default: Amount | None = None


class OrganisationQuotaShape(QuotaShape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most an organisation may have at a time, over all its projects; null is no limit."""

    projects: Amount | None = None


class OrganisationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    owner: MemberName
    """Its first member, who gets a key in the answer."""


class OrganisationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    created_at: datetime
    state: str = "active"
    """`active`, `suspended`, `deleting` or `deleted`."""
    state_reason: str = ""
    state_since: datetime | None = None


class OrganisationMade(msgspec.Struct, frozen=True, kw_only=True):
    organisation: OrganisationAnswer
    owner_id: str
    key: str
    """Shown this once."""


class OrganisationPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[OrganisationAnswer, ...]
    next: str | None


class ProjectRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    quota: QuotaShape = QuotaShape()
    """Limits that are null are those of new projects (the setting `default_project_quota`)."""


class ProjectAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    organisation_id: str
    quota: QuotaShape
    subnet: str
    """Empty until the first instance is launched."""
    created_at: datetime


class ProjectPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ProjectAnswer, ...]
    next: str | None


class OrganisationUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What an organisation uses over all its projects, and its quota."""

    id: str
    name: str
    projects: int
    instances: int
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    images_bytes: int
    gpus: Mapping[str, int]
    quota: OrganisationQuotaShape


class UsageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a project has now, beside what it may have."""

    instances: int
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    images_bytes: int = 0
    gpus: Mapping[str, int]
    quota: QuotaShape
    organisation: OrganisationUsage | None = None
    """Null for those who may not see the usage of the whole organisation."""


class MemberRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: MemberName
    role: RoleWord
    project: Ref = ""
    """Empty: in every project of the organisation."""


class RoleChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    role: RoleWord | None
    """Null takes the role away."""
    project: Ref = ""


class MemberAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    is_operator: bool
    roles: Mapping[str, RoleWord]
    created_at: datetime


class MemberPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[MemberAnswer, ...]
    next: str | None


class KeyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[Ref, Meta(min_length=1)]
    member: Ref = ""
    """Empty: for oneself. For others: owners only."""
    project: Ref = ""
    role_max: RoleWord | None = None
    days: Annotated[int, Meta(ge=1, le=3650)] | None = None
    """Until it expires; null: never."""


class KeyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    member_id: str
    project: str
    role_max: RoleWord | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class KeyMade(msgspec.Struct, frozen=True, kw_only=True):
    key: KeyAnswer
    secret: str
    """Shown this once."""


class KeyPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[KeyAnswer, ...]
    next: str | None


class WhoAmI(msgspec.Struct, frozen=True, kw_only=True):
    member_id: str
    member_name: str
    organisation_id: str
    organisation_name: str
    is_operator: bool
    roles: Mapping[str, RoleWord]
    """The member's, by project; the empty id stands for all. The key may reach less far, see below."""
    key_id: str
    project_id: str = ""
    """The one project the key reaches; empty: all that its member does."""
    role_max: RoleWord | None = None
    """The key may do no more than this role."""
    expires_at: datetime | None = None


class AuditAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    at: datetime
    member_id: str
    member: str = ""
    """Who did it, by name; `operator` where the operator did, `server` where nobody asked for it at that time."""
    key_id: str
    project_id: str
    action: str
    subject: str
    details: Mapping[str, str | int | float | bool | None]


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[AuditAnswer, ...]
    next: str | None
