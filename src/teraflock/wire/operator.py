"""What operators send and get: instances of every tenant, acts with a reason."""

import msgspec

from teraflock.wire.field import Reason
from teraflock.wire.instance import InstanceAnswer


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
