"""Errors that drivers raise. Loops decide by the class: wait, try another place, or undo the operation.

Unavailable
  EngineDown, EngineBusy, BadCredentials    wait: nothing is undone
Refused
  EngineRefused                             undo the operation
    OverQuota, NoMoney, DoesNotBoot
    EngineFailed, EngineMissing             try again a few times, then undo it
    NoRoom                                  undo it, and try the next place if there is one
"""

from typing import ClassVar

from teraflock.base.errors import Refused, Unavailable


class EngineDown(Unavailable):
    """The engine that runs the instance does not answer. Loops retry until it does and undo nothing."""

    code = "engine_down"
    for_tenant: ClassVar[str] = "Its host does not answer now. This continues by itself when the host is back"
    """What the tenant reads. The sentence and the hint are for the operator."""


class EngineBusy(Unavailable):
    """The engine is busy with this instance, or asks to try again later. Loops retry soon."""

    code = "engine_busy"
    for_tenant: ClassVar[str] = "Its host is busy. This continues by itself"


class EngineRefused(Refused):
    """The engine refuses this permanently. Loops undo the operation and show the reason to the tenant."""

    code = "engine_refused"
    remedy = "Ask the operator: the server's log has the engine's reason."
    for_tenant: ClassVar[str] = "Its host could not do it. The operator can see why"


class EngineFailed(EngineRefused):
    """The engine accepted the request and failed at it, for a reason of its own. It may work the next time."""


class EngineMissing(EngineRefused):
    """The engine does not have this instance, snapshot or image. Calls that remove something never raise it."""

    code = "engine_missing"
    remedy = "Wait: the server creates a missing instance again. Then try again."


class NoRoom(EngineRefused):
    """The engine's disks, host or zone are full."""

    code = "no_room"
    remedy = "Delete snapshots or images that you no longer need, or ask the operator."
    for_tenant: ClassVar[str] = (
        "The disks of its host are full. Delete snapshots or images that you no longer need, or ask the operator"
    )


class OverQuota(EngineRefused):
    """The account may not have more of this."""

    code = "over_quota"
    for_tenant: ClassVar[str] = "The operator's account at this site has reached its limit. Ask the operator"


class NoMoney(EngineRefused):
    """The account's balance does not cover it."""

    code = "no_money"
    for_tenant: ClassVar[str] = "The operator's account at this site cannot pay for it. Ask the operator"


class BadCredentials(Unavailable):
    """The site does not accept our credentials. Its machines may still be running, so nothing is assumed about them."""

    code = "bad_credentials"
    for_tenant: ClassVar[str] = (
        "Its site cannot be reached now. This continues by itself once the operator has fixed it"
    )


class DoesNotBoot(EngineRefused):
    """The instance stopped again after it started, or it never answered."""

    code = "does_not_boot"
    remedy = "Check the image. `tera logs NAME` has the console."
    for_tenant: ClassVar[str] = ""
    """Empty: the tenant reads the sentence itself."""
