"""The steps of every operation, each with its undo.

Every step:
- may run twice, because after a crash it is unknown whether it was done. Drivers guarantee that (see `driver.py`);
- may fail at any point. Then it is undone, and the steps before it, last first;
- writes nothing to the database. `rules.finished` changes the instance when the operation ends;
- does not wait long. It returns `Wait` and is run again.

A stop and a delete are never undone: they are tried until they succeed.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from teraflock.instance.driver import Capability, ComputeDriver, Machine, Made, Readiness, Sent
from teraflock.instance.ending import StillEnding
from teraflock.instance.engine_errors import DoesNotBoot, EngineMissing
from teraflock.instance.model import Operation

ENDING_AGAIN_SECONDS: Final = 2.0
DATA_AGAIN_SECONDS: Final = 0.5
READY_AGAIN_SECONDS: Final = 0.05
READY_AGAIN_SECONDS_MAX: Final = 15.0
READY_AGAIN_PARTS: Final = 8
"""The longer a guest takes, the less often it is checked: after an eighth of the time so far."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a step works on."""

    machine: Machine
    subject: str
    """The id of the snapshot or image that it is about."""
    since: datetime
    now: datetime
    ending_at: datetime | None = None
    """When the engine was asked before to end the machine."""


class StepDone(msgspec.Struct, frozen=True, kw_only=True):
    made: Made | None = None
    """What the engine decided about a new machine."""
    readiness: Readiness | None = None
    """How to reach a guest that is ready."""
    kept_bytes: int = 0
    """The size of a new snapshot."""
    sent: Sent | None = None
    """What the guest has sent to other networks."""


class Wait(msgspec.Struct, frozen=True):
    """The step is not done yet and must run again."""

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
    """A step that calls the driver and has no result."""

    def act(driver: ComputeDriver, task: Task) -> Outcome:
        call(driver, task)
        return StepDone()

    return act


_start: Final = _call(lambda driver, task: driver.start(task.machine.handle))
_expose: Final = _call(lambda driver, task: driver.expose(task.machine))
_hide: Final = _call(lambda driver, task: driver.hide(task.machine.handle))
_stop: Final = _call(lambda driver, task: driver.stop(task.machine.handle, force=False))
_fit: Final = _call(lambda driver, task: driver.resize(task.machine))
_drop_snapshot: Final = _call(lambda driver, task: driver.delete_snapshot(task.machine.handle, task.subject))
_restore: Final = _call(lambda driver, task: driver.restore(task.machine.handle, task.subject))
_publish: Final = _call(lambda driver, task: driver.publish(task.machine.handle, task.subject))
_drop_image: Final = _call(lambda driver, task: driver.delete_image(task.subject))


def _prepare(driver: ComputeDriver, task: Task) -> Outcome:
    """Create the networks on the host, and wait for the datasets, which a loop copies there."""
    driver.prepare(task.machine)
    wanted = {each.id: each.name for each in task.machine.data}
    if wanted:
        host = task.machine.handle.host
        there = {each.dataset_id for each in driver.datasets() if each.host == host}
        for name in (wanted[id] for id in wanted if id not in there):
            return Wait(DATA_AGAIN_SECONDS, f"waiting for the data `{name}` on its host")
    volumes = {each.id for each in task.machine.volumes}
    if volumes and not volumes <= {each.volume_id for each in driver.volumes()}:
        return Wait(DATA_AGAIN_SECONDS, "waiting for its volumes")
    return StepDone()


def _create(driver: ComputeDriver, task: Task) -> Outcome:
    return StepDone(made=driver.create(task.machine))


def _delete(driver: ComputeDriver, task: Task) -> Outcome:
    try:
        driver.delete(task.machine.handle)
    except StillEnding as still:
        # a driver that was started since then does not know it
        over_at = still.over_at or task.ending_at or task.now
        return Wait(ENDING_AGAIN_SECONDS, still.sentence, over_at=over_at)
    return StepDone()


def _unplug(driver: ComputeDriver, task: Task) -> Outcome:
    """Power off. If the engine cannot stop a machine, the delete that follows ends it."""
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
            hint="`tera logs` shows its console. You can also try another image",
        )
    waited = (task.now - task.since).total_seconds()
    seconds = min(max(READY_AGAIN_SECONDS, waited / READY_AGAIN_PARTS), READY_AGAIN_SECONDS_MAX)
    return Wait(seconds, readiness.doing)


def _unfit(driver: ComputeDriver, task: Task) -> Outcome:
    with suppress(EngineMissing):  # removed outside Teraflock: the drift loop creates it again
        driver.resize(task.machine)
    return StepDone()


def _read(driver: ComputeDriver, task: Task) -> Outcome:
    counts = Capability.TRAFFIC in driver.capabilities
    return StepDone(sent=driver.sent(task.machine.handle) if counts else None)


def _snapshot(driver: ComputeDriver, task: Task) -> Outcome:
    return StepDone(kept_bytes=driver.snapshot(task.machine.handle, task.subject))


_PREPARE: Final = Step(
    "prepare", _prepare, because="the network belongs to the project and is removed with it"
)
_PREPARE_AGAIN: Final = Step("prepare", _prepare, undo=_hide)
"""The ports of a guest that stopped by itself are still open. If it does not start again, they are closed."""
_CREATE: Final = Step("create", _create, undo=_delete)
_START: Final = Step("start", _start, undo=_unplug)
_EXPOSE: Final = Step("expose", _expose, undo=_hide)
_READY: Final = Step("ready", _ready, because="it only reads")
_HIDE: Final = Step("hide", _hide, because="a stopped instance needs no open ports, and a start opens them")
_STOP: Final = Step("stop", _stop, because="a start follows, or the instance should be stopped")
_UNPLUG: Final = Step("unplug", _unplug, because="it is deleted next")
_DELETE: Final = Step("delete", _delete, because="a deleted disk cannot be restored")
_READ: Final = Step(
    "read", _read, because="it only reads: a start or a delete may end the counter of its traffic"
)
_FIT: Final = Step("fit", _fit, because="the next start applies what is held then")
_FIT_LIVE: Final = Step("fit", _fit, undo=_unfit)

STEPS: Final[Mapping[Operation, tuple[Step, ...]]] = {
    Operation.LAUNCH: (_PREPARE, _CREATE, _START, _EXPOSE, _READY),
    Operation.START: (_PREPARE_AGAIN, _FIT, _READ, _START, _EXPOSE, _READY),
    Operation.STOP: (_HIDE, _STOP, _READ),
    Operation.RESTART: (_HIDE, _STOP, _READ, _START, _EXPOSE, _READY),
    Operation.RESIZE: (_FIT_LIVE,),
    Operation.REFIT: (Step("fit", _fit, because="what cannot be restored stays as it is and is reported"),),
    Operation.RESIZE_RESTART: (_HIDE, _STOP, _FIT, _READ, _START, _EXPOSE, _READY),
    Operation.SNAPSHOT: (Step("snapshot", _snapshot, undo=_drop_snapshot),),
    Operation.RESTORE: (
        Step("restore", _restore, because="the snapshot still exists, so you can restore it again"),
    ),
    Operation.RESTORE_RESTART: (
        _HIDE,
        _STOP,
        Step("restore", _restore, because="as above"),
        _FIT,  # a snapshot may contain limits and cards that other instances have now
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
    """The step after the last completed one."""
    steps = STEPS[operation]
    index = _index(operation, done) + 1 if done else 0
    return steps[index] if index < len(steps) else None


def step_to_undo(operation: Operation, step: str) -> Step | None:
    """While an operation is undone, the journal has the next step to undo. Empty: all are undone."""
    return STEPS[operation][_index(operation, step)] if step else None


def step_before(operation: Operation, step: str) -> str:
    index = _index(operation, step)
    return STEPS[operation][index - 1].name if index else ""


def _index(operation: Operation, name: str) -> int:
    for index, step in enumerate(STEPS[operation]):
        if step.name == name:
            return index
    raise LookupError(f"{operation} has no step {name!r}")
