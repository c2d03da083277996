"""The steps of every operation, each with what undoes it.

What holds of every step:
- it may be run twice, for after a crash nobody knows whether it was done: engines promise that (see `driver.py`);
- it may fail at any point; then it is undone itself, and after it the steps before it, last first;
- it changes nothing in our books: those change with the journal, in `rules.finished`;
- it does not wait for long: it answers `Wait`, and is run again.

A stop and a delete have no way back: they are tried until they succeed.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from teraflock.instance.driver import (
    Capability,
    ComputeDriver,
    DoesNotBoot,
    EngineMissing,
    Machine,
    Made,
    Readiness,
    Sent,
)
from teraflock.instance.ending import StillEnding
from teraflock.instance.model import Operation

ENDING_AGAIN_SECONDS: Final = 2.0
READY_AGAIN_SECONDS: Final = 0.05
READY_AGAIN_SECONDS_MAX: Final = 15.0
READY_AGAIN_PARTS: Final = 8
"""Whatever takes long is asked less often: after an eighth of the time it took so far."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a step works on."""

    machine: Machine
    subject: str
    """The id of the snapshot or image it is about."""
    since: datetime
    now: datetime


class StepDone(msgspec.Struct, frozen=True, kw_only=True):
    made: Made | None = None
    """What the engine decided about a machine that was made."""
    readiness: Readiness | None = None
    """Of a guest that answers."""
    kept_bytes: int = 0
    """What a snapshot adds to what is kept."""
    sent: Sent | None = None
    """What was sent out of the house until now."""


class Wait(msgspec.Struct, frozen=True):
    """Not yet: run me again."""

    seconds: float
    doing: str = ""
    """What it waits for."""
    over_at: datetime | None = None
    """Since when the machine is given back and costs nothing. Only a listing has to confirm it."""


Outcome: TypeAlias = StepDone | Wait
Act: TypeAlias = Callable[[ComputeDriver, Task], Outcome]


class Step(msgspec.Struct, frozen=True):
    name: str
    do: Act
    undo: Act | None = None
    because: str = ""
    """Why there is nothing to undo."""


def _call(call: Callable[[ComputeDriver, Task], object]) -> Act:
    """Ask an engine for one thing, of which there is nothing to tell."""

    def act(driver: ComputeDriver, task: Task) -> Outcome:
        call(driver, task)
        return StepDone()

    return act


_prepare: Final = _call(lambda driver, task: driver.prepare(task.machine))
_start: Final = _call(lambda driver, task: driver.start(task.machine.handle))
_expose: Final = _call(lambda driver, task: driver.expose(task.machine))
_hide: Final = _call(lambda driver, task: driver.hide(task.machine.handle))
_stop: Final = _call(lambda driver, task: driver.stop(task.machine.handle, force=False))
_fit: Final = _call(lambda driver, task: driver.resize(task.machine))
_drop_snapshot: Final = _call(lambda driver, task: driver.delete_snapshot(task.machine.handle, task.subject))
_restore: Final = _call(lambda driver, task: driver.restore(task.machine.handle, task.subject))
_publish: Final = _call(lambda driver, task: driver.publish(task.machine.handle, task.subject))
_drop_image: Final = _call(lambda driver, task: driver.delete_image(task.subject))


def _create(driver: ComputeDriver, task: Task) -> Outcome:
    return StepDone(made=driver.create(task.machine))


def _delete(driver: ComputeDriver, task: Task) -> Outcome:
    try:
        driver.delete(task.machine.handle)
    except StillEnding as still:
        return Wait(ENDING_AGAIN_SECONDS, still.sentence, over_at=still.over_at)
    return StepDone()


def _unplug(driver: ComputeDriver, task: Task) -> Outcome:
    """On an engine that cannot stop a machine, the delete that follows ends it."""
    if Capability.STOP in driver.capabilities:
        driver.stop(task.machine.handle, force=True)
    return StepDone()


def _ready(driver: ComputeDriver, task: Task) -> Outcome:
    readiness = driver.ready(task.machine)
    if readiness.ready:
        return StepDone(readiness=readiness)
    time_max = driver.boot_time_max(task.machine)
    if task.now - task.since > time_max:
        raise DoesNotBoot(
            f"The guest did not answer within {round(time_max.total_seconds())} seconds",
            hint="`tera logs` shows its console; try another image",
        )
    waited = (task.now - task.since).total_seconds()
    seconds = min(max(READY_AGAIN_SECONDS, waited / READY_AGAIN_PARTS), READY_AGAIN_SECONDS_MAX)
    return Wait(seconds, readiness.doing)


def _unfit(driver: ComputeDriver, task: Task) -> Outcome:
    with suppress(EngineMissing):  # removed by other hands: the drift loop makes it anew
        driver.resize(task.machine)
    return StepDone()


def _read(driver: ComputeDriver, task: Task) -> Outcome:
    counts = Capability.TRAFFIC in driver.capabilities
    return StepDone(sent=driver.sent(task.machine.handle) if counts else None)


def _snapshot(driver: ComputeDriver, task: Task) -> Outcome:
    return StepDone(kept_bytes=driver.snapshot(task.machine.handle, task.subject))


_PREPARE: Final = Step(
    "prepare", _prepare, because="the network is the project's; it goes with its last instance"
)
_PREPARE_AGAIN: Final = Step("prepare", _prepare, undo=_hide)
"""Of a guest that went down by itself the ports are still open: if it does not come up again, they are closed."""
_CREATE: Final = Step("create", _create, undo=_delete)
_START: Final = Step("start", _start, undo=_unplug)
_EXPOSE: Final = Step("expose", _expose, undo=_hide)
_READY: Final = Step("ready", _ready, because="it only looks")
_HIDE: Final = Step("hide", _hide, because="what stands still needs no open ports; a start opens them")
_STOP: Final = Step("stop", _stop, because="a start follows, or standing still is what is wanted")
_UNPLUG: Final = Step("unplug", _unplug, because="it is deleted next")
_DELETE: Final = Step("delete", _delete, because="nothing brings a disk back")
_READ: Final = Step(
    "read", _read, because="it only looks: a start or a delete may end the counter of its traffic"
)
_FIT: Final = Step("fit", _fit, because="the next start fits it again to what is held then")
_FIT_LIVE: Final = Step("fit", _fit, undo=_unfit)

STEPS: Final[Mapping[Operation, tuple[Step, ...]]] = {
    Operation.LAUNCH: (_PREPARE, _CREATE, _START, _EXPOSE, _READY),
    Operation.START: (_PREPARE_AGAIN, _FIT, _READ, _START, _EXPOSE, _READY),
    Operation.STOP: (_HIDE, _STOP, _READ),
    Operation.RESTART: (_HIDE, _STOP, _READ, _START, _EXPOSE, _READY),
    Operation.RESIZE: (_FIT_LIVE,),
    Operation.REFIT: (
        Step("fit", _fit, because="what cannot be put back stays as others made it, and is told"),
    ),
    Operation.RESIZE_RESTART: (_HIDE, _STOP, _FIT, _READ, _START, _EXPOSE, _READY),
    Operation.SNAPSHOT: (Step("snapshot", _snapshot, undo=_drop_snapshot),),
    Operation.RESTORE: (
        Step("restore", _restore, because="the snapshot is still there: it can be asked for again"),
    ),
    Operation.RESTORE_RESTART: (
        _HIDE,
        _STOP,
        Step("restore", _restore, because="as above"),
        _FIT,  # a snapshot may remember limits and cards that are somebody else's by now
        _READ,
        _START,
        _EXPOSE,
        _READY,
    ),
    Operation.PUBLISH: (Step("publish", _publish, undo=_drop_image),),
    Operation.DELETE: (_HIDE, _UNPLUG, _READ, _DELETE),
}

UNDOABLE: Final = frozenset(STEPS) - {Operation.STOP, Operation.DELETE}


def next_step(operation: Operation, done: str) -> Step | None:
    """The step behind the last one done."""
    steps = STEPS[operation]
    index = _index(operation, done) + 1 if done else 0
    return steps[index] if index < len(steps) else None


def step_to_undo(operation: Operation, step: str) -> Step | None:
    """While undoing, the journal names the step that is undone next; empty when all are."""
    return STEPS[operation][_index(operation, step)] if step else None


def step_before(operation: Operation, step: str) -> str:
    index = _index(operation, step)
    return STEPS[operation][index - 1].name if index else ""


def _index(operation: Operation, name: str) -> int:
    for index, step in enumerate(STEPS[operation]):
        if step.name == name:
            return index
    raise LookupError(f"{operation} has no step {name!r}")
