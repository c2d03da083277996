"""Quotas and usage of projects and organisations on the wire."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

Amount = Annotated[int, Meta(ge=0, le=1 << 60)]


class QuotaShape(msgspec.Struct, frozen=True, kw_only=True):
    """The most a project can have at a time. Null: no limit."""

    instances: Amount | None = None
    vcpus: Amount | None = None
    ram_bytes: Amount | None = None
    disk_bytes: Amount | None = None
    """Disks of instances, including their snapshots."""
    images_bytes: Amount | None = None
    """The project's own images."""
    data_bytes: Amount | None = None
    """Datasets. Null in the project and the organisation: 64 GB for each project."""
    ports: Amount | None = None
    """Published ports."""
    addresses: Amount | None = None
    """Public addresses."""
    networks: Amount | None = None
    gpus: Mapping[str, Amount] = {}
    gpus_default: Amount | None = None


class QuotaRequest(QuotaShape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most a project can have at a time. Null: no limit."""


class OrganisationQuotaShape(QuotaShape, frozen=True, kw_only=True):
    """The most an organisation can have at a time, over all its projects. Null: no limit."""

    projects: Amount | None = None


class OrganisationQuotaRequest(OrganisationQuotaShape, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most an organisation can have at a time, over all its projects. Null: no limit."""


class UsedAmounts(msgspec.Struct, frozen=True, kw_only=True):
    instances: int
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    images_bytes: int = 0
    data_bytes: int = 0
    ports: int = 0
    addresses: int = 0
    networks: int = 0
    gpus: Mapping[str, int]


class OrganisationUsage(UsedAmounts, frozen=True, kw_only=True):
    """What an organisation uses over all its projects, and its quota."""

    id: str
    name: str
    projects: int
    quota: OrganisationQuotaShape


class UsageAnswer(UsedAmounts, frozen=True, kw_only=True):
    """What a project uses now, and its quota."""

    quota: QuotaShape
    organisation: OrganisationUsage | None = None
    """Null if the key may not see the usage of the whole organisation."""
