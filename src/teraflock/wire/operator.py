"""What operators send and get: instances of every tenant, acts with a reason."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from teraflock.wire.instance import InstanceAnswer, Name

Reason = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=500,
        pattern=r"^[^\u0000-\u001f\u007f]+$(?!\n)",
        description="One line. The tenant sees it in events, in the audit log and with the instance.",
    ),
]


class StopByOperator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Reason


class StartByOperator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Reason
    release_only: bool = False
    """Lift the hold and leave the start to the tenant."""


class LocatedInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance with whose it is."""

    organisation_id: str
    organisation: str
    project: str
    problem: str
    """As the tenant sees it, with what only the operator can act on."""
    instance: InstanceAnswer


class LocatedPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[LocatedInstance, ...]
    next: str | None


class OrganisationStateChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    state: Literal["active", "suspended"]
    reason: Reason


class OrganisationRename(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    reason: Reason


class OrganisationDeletion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In the query: many clients send no body with DELETE."""

    reason: Reason
    force: bool = False
