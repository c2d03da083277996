"""What can be told to go wrong: which call, at which point of it, how, and how often.

A fault stands in the world, not in a process: one that is to happen once does not happen again after the restart it
caused. As text: `create:half:killed`, `start:before:engine-down*3`, `delete:after:killed@ins_…`, several with commas.
"""

import os
import signal
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NoReturn

import msgspec

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.instance.driver import (
    BadCredentials,
    DoesNotBoot,
    EngineBusy,
    EngineDown,
    EngineRefused,
    NoMoney,
    NoRoom,
    OverQuota,
)

FOREVER: Final = 1 << 30
ANY: Final = "*"


class When(StrEnum):
    BEFORE = "before"
    """Nothing of the call is done."""
    HALF = "half"
    """A part is, where the call has parts; else all of it."""
    AFTER = "after"
    """All is done, and the caller does not learn of it."""


class Kind(StrEnum):
    ENGINE_DOWN = "engine-down"
    BUSY = "busy"
    REFUSED = "refused"
    NO_ROOM = "no-room"
    OVER_QUOTA = "over-quota"
    NO_MONEY = "no-money"
    BAD_CREDENTIALS = "bad-credentials"
    DOES_NOT_BOOT = "does-not-boot"
    LATER = "later"
    """A start is taken, and turns out to have failed half way to the guest's answer."""
    KILLED = "killed"
    """The process that called ends at once, as by `kill -9`."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    call: str
    """A method of the protocol, or `*` for any."""
    when: When = When.BEFORE
    kind: Kind
    times: int = 1
    after_calls: int = 0
    """How many such calls pass unharmed before."""
    instance: str = ""
    """Only calls about this instance; empty: any."""

    def meets(self, call: str, instance: str) -> bool:
        return self.call in (call, ANY) and self.instance in ("", instance)

    def spent(self) -> "Fault | None":
        """What is left of it after one more call that it meets."""
        if self.after_calls:
            return msgspec.structs.replace(self, after_calls=self.after_calls - 1)
        return msgspec.structs.replace(self, times=self.times - 1) if self.times > 1 else None


class Killed(BaseException):
    """Stands for the end of the process where tests want to live on. No `except Exception` may stop it."""


def kill_this_process() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("the signal cannot be ignored")


def raise_killed() -> NoReturn:
    raise Killed


ERRORS: Final[Mapping[Kind, TeraflockError]] = {
    Kind.ENGINE_DOWN: EngineDown("The simulated engine does not answer", hint="Try again in a moment"),
    Kind.BUSY: EngineBusy("The simulated engine is busy with this instance", hint="Try again in a moment"),
    Kind.REFUSED: EngineRefused("The simulated engine refused, as it was told to"),
    Kind.NO_ROOM: NoRoom("The simulated host's storage pool is full", hint="Delete what is not needed"),
    Kind.OVER_QUOTA: OverQuota("The simulated account has reached its limit"),
    Kind.NO_MONEY: NoMoney("The simulated account has no money left"),
    Kind.BAD_CREDENTIALS: BadCredentials("The simulated cloud does not accept the account's credentials"),
    Kind.DOES_NOT_BOOT: DoesNotBoot("The simulated guest went down again right after its start"),
}


def error(kind: Kind) -> TeraflockError:
    """A fresh one: an error that is raised twice keeps the first traceback."""
    known = ERRORS[kind]
    return type(known)(known.sentence, hint=known.hint)


def taken(faults: tuple[Fault, ...], call: str, instance: str) -> tuple[Fault | None, tuple[Fault, ...]]:
    """The fault that befalls this call, if any, and the faults that are left."""
    for place, fault in enumerate(faults):
        if fault.meets(call, instance):
            rest = fault.spent()
            left = (*faults[:place], *((rest,) if rest else ()), *faults[place + 1 :])
            return (None if fault.after_calls else fault), left
    return None, faults


def parse(text: str) -> tuple[Fault, ...]:
    return tuple(_one(word.strip()) for word in text.split(",") if word.strip())


def _one(word: str) -> Fault:
    rest, _, instance = word.partition("@")
    try:
        call, when, kind = rest.split(":")
        kind, _, times = kind.partition("*")
        return Fault(call=call, when=When(when), kind=Kind(kind), times=int(times or 1), instance=instance)
    except ValueError as wrong:
        raise BadInput(
            f"`{word}` is no fault",
            hint=f"Write `call:when:kind*times`; when is one of {', '.join(When)}, kind one of {', '.join(Kind)}",
        ) from wrong
