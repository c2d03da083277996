"""Faults to inject: which call, at which point, how, and how often.

A fault is stored in the world, not in a process, so a single fault does not repeat after the restart it
caused. Written as text: `create:half:killed`, `start:before:engine-down*3`, `delete:after:killed@ins_…`;
separate several with commas.
"""

import os
import signal
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NoReturn

import msgspec

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.instance.engine_errors import (
    BadCredentials,
    DoesNotBoot,
    EngineBusy,
    EngineDown,
    EngineFailed,
    EngineRefused,
    NoMoney,
    NoRoom,
    OverQuota,
)

FOREVER: Final = 1 << 30
ANY: Final = "*"


class When(StrEnum):
    BEFORE = "before"
    """The call has no effect."""
    HALF = "half"
    """A part of the call takes effect; all of it if the call has no parts."""
    AFTER = "after"
    """The call takes full effect, but the caller gets an error."""


class Kind(StrEnum):
    ENGINE_DOWN = "engine-down"
    BUSY = "busy"
    REFUSED = "refused"
    FAILED = "failed"
    """The engine fails for a reason of its own; the next attempt may succeed."""
    NO_ROOM = "no-room"
    OVER_QUOTA = "over-quota"
    NO_MONEY = "no-money"
    BAD_CREDENTIALS = "bad-credentials"
    DOES_NOT_BOOT = "does-not-boot"
    LATER = "later"
    """The start succeeds, but fails before the guest answers."""
    KILLED = "killed"
    """The calling process ends at once, as with `kill -9`."""


class SimulatedFault(msgspec.Struct, frozen=True, kw_only=True):
    call: str
    """A method of the protocol, or `*` for any."""
    when: When = When.BEFORE
    kind: Kind
    times: int = 1
    after_calls: int = 0
    """How many matching calls succeed first."""
    instance: str = ""
    """Only calls about this instance. Empty: any."""

    def meets(self, call: str, instance: str) -> bool:
        return self.call in (call, ANY) and self.instance in ("", instance)

    def spent(self) -> "SimulatedFault | None":
        """Return what remains of the fault after one more matching call."""
        if self.after_calls:
            return msgspec.structs.replace(self, after_calls=self.after_calls - 1)
        return msgspec.structs.replace(self, times=self.times - 1) if self.times > 1 else None


class Killed(BaseException):
    """Simulates the end of the process in tests that must survive it. `except Exception` must not catch it."""


def kill_this_process() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("the signal cannot be ignored")


def raise_killed() -> NoReturn:
    raise Killed


ERRORS: Final[Mapping[Kind, TeraflockError]] = {
    Kind.ENGINE_DOWN: EngineDown("The simulated engine does not answer", hint="Try again in a moment"),
    Kind.BUSY: EngineBusy("The simulated engine is busy with this instance", hint="Try again in a moment"),
    Kind.REFUSED: EngineRefused("The simulated engine refused because of an injected fault"),
    Kind.FAILED: EngineFailed("The simulated engine failed because of an injected fault"),
    Kind.NO_ROOM: NoRoom("The simulated host's storage pool is full", hint="Delete what you do not need"),
    Kind.OVER_QUOTA: OverQuota("The simulated account has reached its limit"),
    Kind.NO_MONEY: NoMoney("The simulated account has no money left"),
    Kind.BAD_CREDENTIALS: BadCredentials("The simulated cloud rejected the account's credentials"),
    Kind.DOES_NOT_BOOT: DoesNotBoot("The simulated guest stopped right after it started"),
}


def error(kind: Kind) -> TeraflockError:
    """Return a new error each time: an error raised twice keeps its first traceback."""
    known = ERRORS[kind]
    return type(known)(known.sentence, hint=known.hint)


def taken(
    faults: tuple[SimulatedFault, ...], call: str, instance: str
) -> tuple[SimulatedFault | None, tuple[SimulatedFault, ...]]:
    """Return the fault for this call, if any, and the remaining faults."""
    for place, fault in enumerate(faults):
        if fault.meets(call, instance):
            rest = fault.spent()
            left = (*faults[:place], *((rest,) if rest else ()), *faults[place + 1 :])
            return (None if fault.after_calls else fault), left
    return None, faults


def parse(text: str) -> tuple[SimulatedFault, ...]:
    return tuple(_one(word.strip()) for word in text.split(",") if word.strip())


def _one(word: str) -> SimulatedFault:
    rest, _, instance = word.partition("@")
    try:
        call, when, kind = rest.split(":")
        kind, _, times = kind.partition("*")
        return SimulatedFault(
            call=call, when=When(when), kind=Kind(kind), times=int(times or 1), instance=instance
        )
    except ValueError as wrong:
        raise BadInput(
            f"Invalid fault `{word}`",
            hint=f"Write `call:when:kind*times`; when is one of {', '.join(When)}, kind one of {', '.join(Kind)}",
        ) from wrong
