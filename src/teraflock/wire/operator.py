"""Requests and responses for operators: instances of every tenant, actions with a reason."""

import msgspec

from teraflock.wire.field import Reason
from teraflock.wire.instance import InstanceAnswer


class StopByOperator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Reason


class StartByOperator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Reason
    release_only: bool = False
    """Lift the hold without starting the instance."""


class LocatedInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance with its organisation and project."""

    organisation_id: str
    organisation: str
    project: str
    problem: str
    """The problem as the tenant sees it, with details for the operator."""
    instance: InstanceAnswer


class LocatedPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[LocatedInstance, ...]
    next: str | None
