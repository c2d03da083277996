"""Launches that wait for room. A queued launch has no instance, and counts against no quota, until it starts."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from teraflock.base.size import Size
from teraflock.fleet.placement import PlaceTerms
from teraflock.instance.orders import Order
from teraflock.tenant.model import Actor, MemberId, ProjectId


class QueueState(StrEnum):
    WAITING = "waiting"
    LAUNCHED = "launched"
    CANCELLED = "cancelled"
    FAILED = "failed"
    """It can no longer be launched, for example because its image was deleted."""


class QueuedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    project_id: ProjectId
    name: str = ""
    """Of the instances. Empty: generated when it starts."""
    launch: Order | None
    """None: it no longer waits."""
    actor: Actor | None
    """Who asked for it. Checked again when it starts."""
    need: Size
    """Of each instance, on the hosts of the time when it was queued."""
    instances: int
    priority: int = 0
    state: QueueState = QueueState.WAITING
    reason: str = ""
    """Why it still waits, or why it failed."""
    instance_ids: tuple[str, ...] = ()
    created_by: MemberId
    created_at: datetime
    ended_at: datetime | None = None


class Release(msgspec.Struct, frozen=True):
    """Room that a running instance gives back at its time limit."""

    at: datetime
    host_id: str
    held: Size


class QueuedOfTenant(msgspec.Struct, frozen=True, kw_only=True):
    """A queued launch, with the names of who waits for it."""

    queued: QueuedLaunch
    organisation: str
    project: str


class QueuePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a waiting launch is in the queue."""

    place: int
    """1 is the next one."""
    of: int
    expected_at: datetime | None
    """When it starts at the latest, as far as time limits of running instances show. None: unknown."""


class Start(msgspec.Struct, frozen=True):
    """A queued launch that fits now."""

    id: str
    reservation: str
    """The queued launch whose reserved hosts it may use: its own, one behind it, or one that it does not delay."""


class QueueTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at the queue decides."""

    starts: tuple[Start, ...] = ()
    reserved_for: str = ""
    """The first launch that does not fit. Empty: none."""
    reserved: tuple[str, ...] = ()
    """The hosts that are kept free for it."""


class Waiting(msgspec.Struct, frozen=True):
    """A waiting launch with the terms of its placement."""

    queued: QueuedLaunch
    terms: PlaceTerms


Used = Mapping[str, float]
"""What each project used lately, in GPU-seconds."""
