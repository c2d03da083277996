"""The loop that brings each instance from its state to what is wanted.

    load    lease due instances that no living worker has to this worker
    decide  `instance/rules.py` selects the operation, `instance/steps.py` the next step
    apply   run the step on the engine, then record it; if a step fails, undo it and those before it

Invariants:
- the journal names the last completed step before the next one begins. A worker that dies loses at most one
  step, and the next worker runs that step again;
- every write applies to the current row, and only while the lease is valid: the tenant may change what is
  wanted, and a worker that was considered dead may come back;
- directly before it calls an engine, the worker checks with its own clocks that others still consider it
  alive, and that it has not leased the row again since. A worker that was suspended calls no engine. It can
  still be suspended within the call: then it may repeat what another worker did, which engines must tolerate,
  or do what is no longer wanted, which `drift.py` repairs;
- if an engine is away, the operation waits. It is undone only if an engine refuses, or a guest does not boot.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host, HostId, HostKind
from teraflock.fleet.rented import store as rented_hosts
from teraflock.image import store as images
from teraflock.image.model import ImageState
from teraflock.instance import store
from teraflock.instance.copy.rules import is_movable
from teraflock.instance.driver import GRACE, PATIENCE, ComputeDriver, Rental
from teraflock.instance.engine_errors import (
    DoesNotBoot,
    EngineBusy,
    EngineFailed,
    EngineMissing,
    EngineRefused,
    NoRoom,
)
from teraflock.instance.events import problem_texts
from teraflock.instance.lease import store as leases
from teraflock.instance.machines import machine_of
from teraflock.instance.model import Instance, Operation, Progress, SnapshotState
from teraflock.instance.rules import (
    IllegalMove,
    begun,
    finished,
    is_last_place,
    lost,
    next_operation,
    overtaken,
    retry_after,
    settled,
    with_next_place,
)
from teraflock.instance.snapshot import store as snapshots
from teraflock.instance.steps import (
    UNDOABLE,
    Outcome,
    Step,
    StepDone,
    Task,
    Wait,
    next_step,
    step_before,
    step_to_undo,
)
from teraflock.reconcile import rentals, traffic
from teraflock.reconcile.hands import Hands
from teraflock.reconcile.rerenting import rent_again
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.tenant.project.store import claim, name_of_any_organisation

LOG: Final = logging.getLogger("teraflock.reconcile")
LEASES_PER_TURN: Final = 200
STAY_SECONDS_MAX: Final = 1.0
"""The same thread repeats a waiting step for this long, unless other instances need it. Then the row waits.
"""
FAULTS_MAX: Final = 3
"""How often a step is tried after an unexpected error before it is undone."""
ENGINE_FAILURES_MAX: Final = 5
"""How often a step is tried where the engine fails at it, or misses what a step before made. A crowded engine does both
while it cleans up after an attempt that took too long."""
BUSY_TIME_MAX: Final = timedelta(minutes=15)
"""How long a launch waits for an engine that answers and is still at work. Longer than for one that does not answer: 24
launches at once keep a host with two cores busy for minutes, and each of them gets its turn."""


class _Suspended(Exception):
    """Others may consider this worker dead, or another thread has the row: it must not call the engine."""


def no_faults(point: str) -> None:
    """Hook where tests end the process: `launch.create:before`, `launch.create:after` …"""


class InstanceLoop:
    def __init__(
        self,
        around: Surroundings,
        *,
        worker: str,
        fault: Callable[[str], None] = no_faults,
        pause: Callable[[float], None] = time.sleep,
        crowded: Callable[[], bool] = lambda: False,
        alive: Callable[[], bool] = lambda: True,
    ) -> None:
        """`crowded` is whether others wait for a thread, `alive` whether this worker is still considered
        alive."""
        self._around = around
        self._worker = worker
        self._fault = fault
        self._pause = pause
        self._crowded = crowded
        self._alive = alive
        self._hands = Hands()
        self._hosts: dict[str, Host] = {}
        """Own hosts by id. Their sites and names never change."""
        self._project_names: dict[str, str] = {}
        """Networks by project. They never change."""

    # Load

    def lease(self) -> tuple[Instance, ...]:
        """Lease what is due, and begin the operation that each instance needs."""

        def work(tx: Transaction) -> tuple[Instance, ...]:
            now = self._around.clock.now()
            due = leases.lease_due_in_all_projects(tx, self._worker, now=now, limit=LEASES_PER_TURN)
            return tuple(begun for each in due if (begun := self._begin_alone(tx, each, now)))

        with self._around.database.read() as tx:  # most turns find nothing, and a read blocks nobody
            if not leases.is_any_due_in_all_projects(tx, self._around.clock.now()):
                return ()
        leased = self._around.database.write_with_locks(work)
        self._hands.take(leased)
        return leased

    def next_due(self) -> datetime | None:
        with self._around.database.read() as tx:
            return leases.next_due_in_all_projects(tx)

    # Decide

    def _begin_alone(self, tx: Transaction, instance: Instance, now: datetime) -> Instance | None:
        """Like `_begin`. After an internal error the instance stays leased, so that it does not block the
        others."""
        try:
            return self._begin(tx, instance, now)
        except IllegalMove:
            LOG.exception("cannot begin the operation of %s", instance.id)
            return None

    def _begin(self, tx: Transaction, instance: Instance, now: datetime) -> Instance | None:
        """Return the instance with its operation begun, or None if there is nothing to do and it is released."""
        after = instance
        if overtaken(instance):
            after = begun(replace(instance, progress=None, request=None), Operation.DELETE, now)
        elif instance.progress is None:
            operation = next_operation(instance)
            after = begun(instance, operation, now) if operation else settled(instance)
        if after != instance:
            after = store.put(tx, instance, after, now=now, random_bytes=self._around.random_bytes)
        if after.progress is None:
            leases.let_go(tx, after.id, self._worker)
            return None
        return after

    # Apply

    def advance(self, instance: Instance) -> None:
        """Run the steps of a leased instance until it is as wanted, or must wait."""
        current: Instance | None = instance
        while current is not None:
            current = self._hands.pass_on(current, self._advanced(current))

    def _advanced(self, instance: Instance) -> Instance | None:
        assert instance.progress is not None, "a leased instance has an operation"
        step = _step_of(instance.progress)
        try:
            outcome = self._run_patiently(step, instance) if step else StepDone()
        except _Suspended:  # another worker may have continued, and must not be disturbed
            return self._write(instance, _put_off)
        except Exception as error:
            patience = self._patience(instance)
            return self._write(instance, partial(_failed, step=step, error=error, patience=patience))
        return self._record_quickly(instance, step, outcome) or self._write(
            instance, partial(_stepped, step=step, outcome=outcome), outcome
        )

    def _record_quickly(self, instance: Instance, step: Step | None, outcome: Outcome) -> Instance | None:
        """Record a step in the middle of an operation on an unchanged row: one statement, no read."""
        progress = instance.progress
        if (
            step is None
            or progress is None
            or not isinstance(outcome, StepDone)
            or outcome != StepDone()
            or progress.undoing
        ):
            return None
        now = self._around.clock.now()
        after = replace(progress, step=step.name, attempts=0, since=now)
        if _step_of(after) is None or not self._hands.hold(instance):
            return None
        noted = self._around.database.write_one(
            lambda tx: leases.note_step(tx, instance, self._worker, step.name, now)
        )
        return replace(instance, progress=after) if noted else None

    def _run_patiently(self, step: Step, instance: Instance) -> Outcome:
        stayed = 0.0
        while isinstance(outcome := self._run(step, instance), Wait):
            if stayed >= STAY_SECONDS_MAX or outcome.over_at or self._crowded():
                break
            self._pause(outcome.seconds)
            stayed += outcome.seconds
        return outcome

    def _run(self, step: Step, instance: Instance) -> Outcome:
        progress = instance.progress
        assert progress is not None, "a step belongs to an operation"
        act = step.undo if progress.undoing else step.do
        if act is None or instance.host_id is None:  # an instance that failed at launch is on no engine
            return StepDone()
        driver, task = self._task(instance, progress)
        point = f"{progress.operation}.{step.name}{':undo' if progress.undoing else ''}"
        self._fault(f"{point}:before")
        if not (self._alive() and self._hands.hold(instance)):
            raise _Suspended
        if task.machine.rental is not None:
            self._note_rental(instance.host_id, step, progress, task.machine.rental, task.now)
        outcome = act(driver, task)
        self._fault(f"{point}:after")
        return outcome

    def _note_rental(
        self, host_id: HostId, step: Step, progress: Progress, rental: Rental, now: datetime
    ) -> None:
        """Store what is about to be asked of a provider: after a crash, nothing else shows it."""
        if step.name == "create" and not progress.undoing:
            self._around.database.write(
                lambda tx: rented_hosts.note_token(tx, host_id, rental.token, now, grace=GRACE)
            )
        elif step.name in ("create", "delete"):
            self._around.database.write(lambda tx: rented_hosts.note_ending(tx, host_id, now))

    def _task(self, instance: Instance, progress: Progress) -> tuple[ComputeDriver, Task]:
        host = self._host(instance)
        task = Task(
            machine=machine_of(instance, host, self._project_name(instance)),
            ending_at=host.ending_at,
            subject=instance.request.subject if instance.request else "",
            since=progress.since,
            now=self._around.clock.now(),
        )
        return self._around.engines.at(instance.site), task

    def _patience(self, instance: Instance) -> timedelta:
        """How long a launch waits for an engine that does not answer. From a lost host, `moving.py` moves it."""
        if is_movable(instance):
            with self._around.database.read() as tx:
                if fleet.is_away(tx, instance.host_id or ""):
                    return timedelta.max
        engines = self._around.engines
        return engines.at(instance.site).patience if instance.site in engines else PATIENCE

    def _write(
        self,
        instance: Instance,
        change: Callable[[Instance, datetime], Instance],
        outcome: Outcome | None = None,
    ) -> Instance | None:
        """Write a change to the current row. Return None if the row is no longer ours or has to wait.

        A worker that was suspended may have lost a row and leased it again. Then the row is at another step,
        and this thread's work on it is obsolete.
        """

        done = outcome if isinstance(outcome, StepDone) else StepDone()
        # traffic is money: record it only in a transaction that is serialisable with those of billing
        database = self._around.database
        locks = done.sent is None
        find, write = (
            (leases.lock_held_by, database.write_with_locks) if locks else (leases.held_by, database.write)
        )

        def work(tx: Transaction) -> Instance | None:
            now = self._around.clock.now()
            if instance.progress and instance.progress.try_next:  # quotas and budgets are checked again
                claim(tx, instance.project_id)
            fresh = find(tx, instance.id, self._worker)
            if fresh is None or _point(fresh) != _point(instance) or not self._hands.hold(instance):
                return None
            if done.sent is not None:
                traffic.keep(tx, [done.sent], now)
            if isinstance(outcome, Wait) and outcome.over_at and fresh.host_id is not None:
                over_at, random_bytes = outcome.over_at, self._around.random_bytes
                rentals.note_end(tx, fresh, fresh.host_id, now, random_bytes, since=over_at)
            return self._applied(tx, fresh, change(fresh, now), done, now)

        return write(work)

    def _applied(
        self, tx: Transaction, fresh: Instance, after: Instance, done: StepDone, now: datetime
    ) -> Instance | None:
        """Write the result of a step. Return the instance if this thread continues with it."""
        rentals.note(tx, fresh, after, done, now, self._around.random_bytes)
        if fresh.progress is not None and after.progress is None:
            _close_books(tx, fresh, fresh.progress, done)
            after = _with_snapshots(after, snapshots.kept_bytes(tx, after.id))
            if fleet.is_away(tx, after.host_id or ""):  # the host was lost during this step
                after = lost(after)
        if after.progress is None:
            after = settled(after)  # here, so that the row is written once
        if after.candidate != fresh.candidate:
            fails = partial(_not_rented, undone=fresh, now=now)
            stored = rent_again(tx, self._around, fresh, after, now, fails=fails)
        else:
            stored = store.put(tx, fresh, after, now=now, random_bytes=self._around.random_bytes)
        if stored.due_at > now:
            leases.let_go(tx, fresh.id, self._worker)
            return None
        return self._begin(tx, stored, now)

    def _host(self, instance: Instance) -> Host:
        known = self._hosts.get(instance.host_id or "")
        if known is None:
            with self._around.database.read() as tx:
                known = fleet.host(tx, instance.host_id or "")
            assert known is not None, "an instance with an operation has a host"
            if known.kind == HostKind.OWN:
                self._hosts[known.id] = known
        return known

    def _project_name(self, instance: Instance) -> str:
        project = instance.project_id
        if project not in self._project_names:
            with self._around.database.read() as tx:
                self._project_names[project] = name_of_any_organisation(tx, project)
        return self._project_names[project]


def _put_off(fresh: Instance, now: datetime) -> Instance:
    return replace(fresh, due_at=now + retry_after(0))


def _point(instance: Instance) -> tuple[object, ...]:
    """Return the position of an instance in its operation."""
    progress = instance.progress
    return (instance.generation, progress and progress.step, progress and progress.undoing)


def _step_of(progress: Progress) -> Step | None:
    """Return the step to do or to undo, or None if all are done."""
    if progress.undoing:
        return step_to_undo(progress.operation, progress.step)
    return next_step(progress.operation, progress.step)


def _failed(
    fresh: Instance, now: datetime, *, step: Step | None, error: Exception, patience: timedelta
) -> Instance:
    """Handle a step that raised: wait and try again, or begin to undo."""
    progress = fresh.progress
    assert progress is not None, "a step belongs to an operation"
    doing = step.name if step else progress.operation
    if not isinstance(error, TeraflockError):
        LOG.error("%s: %s failed", fresh.id, doing, exc_info=error)
    elif isinstance(error, EngineRefused):
        LOG.warning("%s: %s failed: %s %s", fresh.id, doing, error.sentence, dict(error.context))
    attempts = progress.attempts + 1
    problem, for_operator = problem_texts(error)
    if not progress.undoing and step is not None and _gives_up(progress, error, attempts, now, patience):
        try_next = isinstance(error, NoRoom | DoesNotBoot) and not is_last_place(fresh)
        undoing = replace(progress, undoing=True, step=step.name, attempts=0, try_next=try_next, doing="")
        return replace(fresh, progress=undoing, problem=problem, problem_operator=for_operator, due_at=now)
    again = replace(fresh, progress=replace(progress, attempts=attempts), due_at=now + retry_after(attempts))
    return replace(again, problem=problem, problem_operator=for_operator) if attempts > 1 else again


def _stepped(fresh: Instance, now: datetime, *, step: Step | None, outcome: Outcome) -> Instance:
    """Return the instance after a step, or after the last one."""
    progress = fresh.progress
    assert progress is not None, "a step belongs to an operation"
    if isinstance(outcome, Wait):
        waiting = replace(progress, doing=outcome.doing)
        return replace(fresh, progress=waiting, due_at=now + timedelta(seconds=outcome.seconds))
    if step is not None:
        name = step_before(progress.operation, step.name) if progress.undoing else step.name
        progress = replace(progress, step=name, attempts=0, since=now, doing="")
        host_key = outcome.readiness.host_key if outcome.readiness else ""
        fresh = replace(fresh, progress=progress, host_key=host_key or fresh.host_key)
    if _step_of(progress) is not None:
        return fresh
    return with_next_place(fresh, now) if progress.try_next else finished(fresh, now=now)


def _not_rented(instance: Instance, *, undone: Instance, now: datetime) -> Instance:
    """The instance whose launch was undone, and that may not be rented at the next place."""
    return finished(replace(instance, progress=undone.progress), now=now)


def _gives_up(
    progress: Progress, error: Exception, attempts: int, now: datetime, patience: timedelta
) -> bool:
    if progress.operation not in UNDOABLE:
        return False
    if isinstance(error, EngineFailed | EngineMissing):
        return attempts >= ENGINE_FAILURES_MAX
    if isinstance(error, EngineRefused):
        return True
    if isinstance(error, Unavailable):
        time_max = max(patience, BUSY_TIME_MAX) if isinstance(error, EngineBusy) else patience
        return progress.operation == Operation.LAUNCH and now - progress.since > time_max
    return attempts >= FAULTS_MAX


def _with_snapshots(instance: Instance, kept_bytes: int) -> Instance:
    if instance.held.snapshots_bytes == kept_bytes:
        return instance
    return replace(instance, held=replace(instance.held, snapshots_bytes=kept_bytes))


def _close_books(tx: Transaction, instance: Instance, progress: Progress, done: StepDone) -> None:
    """Record what else changes when an operation ends."""
    subject = instance.request.subject if instance.request else ""
    if progress.operation == Operation.SNAPSHOT:
        state = SnapshotState.FAILED if progress.undoing else SnapshotState.READY
        problem = instance.problem if progress.undoing else ""
        snapshots.move(tx, subject, state, size_bytes=done.kept_bytes, problem=problem)
    elif progress.operation == Operation.PUBLISH:
        made = ImageState.FAILED if progress.undoing else ImageState.READY
        images.move(tx, subject, made, problem=instance.problem if progress.undoing else "")
    elif progress.operation == Operation.DELETE:
        snapshots.remove_all_of(tx, instance.id)
        images.fail_unmade(tx, instance.id, "Its instance was deleted before it was made")
    # a repeated launch after its disk was lost, together with its snapshots
    elif progress.operation == Operation.LAUNCH:
        snapshots.remove_all_of(tx, instance.id)
