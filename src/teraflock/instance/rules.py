"""The decisions about an instance: which operation comes next, and how an operation changes it. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.instance.candidates import at_candidate, places
from teraflock.instance.driver import Capability
from teraflock.instance.model import Access, Held, Instance, Operation, Progress, Request, RestartPolicy
from teraflock.instance.states import BILLABLE, ENDED, MOVES, Phase, Wanted


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """The phases of an operation. None does not change the phase."""

    during: Phase | None = None
    done: Phase | None = None
    undone: Phase | None = None


COURSES: Final[Mapping[Operation, Course]] = {
    Operation.LAUNCH: Course(during=Phase.STARTING, done=Phase.RUNNING, undone=Phase.FAILED),
    Operation.START: Course(during=Phase.STARTING, done=Phase.RUNNING, undone=Phase.STOPPED),
    Operation.STOP: Course(during=Phase.STOPPING, done=Phase.STOPPED),
    Operation.RESTART: Course(during=Phase.CHANGING, done=Phase.RUNNING, undone=Phase.STOPPED),
    Operation.RESIZE: Course(),
    Operation.REFIT: Course(),
    Operation.RESIZE_RESTART: Course(during=Phase.CHANGING, done=Phase.RUNNING, undone=Phase.STOPPED),
    Operation.SNAPSHOT: Course(),
    Operation.RESTORE: Course(),
    Operation.RESTORE_RESTART: Course(during=Phase.CHANGING, done=Phase.RUNNING, undone=Phase.STOPPED),
    Operation.PUBLISH: Course(),
    Operation.DELETE: Course(during=Phase.DELETING, done=Phase.GONE),
}

TIME_LIMIT_NOTICE_MAX: Final = timedelta(minutes=10)
"""How long before the end of a time limit the event is recorded, or a tenth of the limit if that is shorter."""
TIME_LIMIT_NOTICE_MIN: Final = timedelta(seconds=5)
"""The event is not later than this, so that the loop does not miss it."""
_REPORTED_ELSEWHERE: Final = frozenset({Operation.SNAPSHOT, Operation.PUBLISH})
"""Their problems are recorded with the snapshot or image, because the instance itself is not affected."""

RETRY_SECONDS: Final = 0.2
RETRY_SECONDS_MAX: Final = 5.0


class IllegalMove(RuntimeError):
    """A change of phase that is not in the table. This is a bug."""


def moved(instance: Instance, phase: Phase) -> Instance:
    """Change the phase. Nothing else may do that."""
    if phase == instance.phase:
        return instance
    if phase not in MOVES[instance.phase]:
        raise IllegalMove(f"{instance.id}: {instance.phase} → {phase}")
    return replace(instance, phase=phase)


def next_operation(instance: Instance) -> Operation | None:
    """The operation that an instance without an operation needs to become what is wanted."""
    phase, wanted, request = instance.phase, instance.wanted, instance.request
    if phase == Phase.GONE:
        return None
    if wanted == Wanted.GONE:
        return Operation.DELETE
    if phase == Phase.FAILED:
        return None
    if phase == Phase.QUEUED:
        return Operation.LAUNCH
    if phase == Phase.STOPPED:
        return _of_stopped(wanted, request)
    if wanted == Wanted.STOPPED:
        return Operation.STOP
    return request.operation if request else None


def _of_stopped(wanted: Wanted, request: Request | None) -> Operation | None:
    asked = request.operation if request else None
    if asked in (Operation.SNAPSHOT, Operation.RESTORE, Operation.PUBLISH, Operation.STOP):
        return asked
    if wanted == Wanted.STOPPED:
        return None
    # a lost disk is created again
    return Operation.LAUNCH if asked == Operation.LAUNCH else Operation.START


def begun(instance: Instance, operation: Operation, now: datetime) -> Instance:
    """The instance with an operation begun."""
    during = COURSES[operation].during
    # wait until its host is back: see `returned`
    waits = instance.phase == Phase.AWAY and during == Phase.CHANGING
    started = moved(instance, during) if during and not waits else instance
    if operation == Operation.LAUNCH:  # its user-data runs on every new disk, also after a loss
        has_script = bool(instance.spec.user_data) and instance.spec.watches_guest
        started = replace(started, user_data_waits=has_script, user_data_exit_code=None)
    return replace(
        started,
        progress=Progress(operation=operation, since=now),
        generation=instance.generation + 1,
        settled=False,
        problem="" if operation != Operation.DELETE else instance.problem,
        problem_operator="" if operation != Operation.DELETE else instance.problem_operator,
    )


def overtaken(instance: Instance) -> bool:
    """Whether the current operation is obsolete, because the instance should be deleted."""
    progress = instance.progress
    return instance.wanted == Wanted.GONE and progress is not None and progress.operation != Operation.DELETE


def finished(instance: Instance, *, now: datetime) -> Instance:
    """The instance after the last step of its operation was done or undone."""
    progress = instance.progress
    assert progress is not None, "only an instance with an operation can finish it"
    course = COURSES[progress.operation]
    phase = course.undone if progress.undoing else course.done
    after = moved(instance, phase) if phase else instance
    after = replace(after, progress=None, due_at=now)
    if not progress.undoing or progress.operation in _REPORTED_ELSEWHERE:
        after = replace(after, problem="", problem_operator="")
    if _answers(progress.operation, instance.request):
        after = replace(after, request=None)
    elif progress.operation == Operation.STOP and instance.request:
        after = replace(after, request=_after_stop(instance.request))
    if instance.request and progress.operation == instance.request.operation:
        after = _with_cards(after, instance.request, undone=progress.undoing)
    if progress.undoing:
        after = _taken_back(after, instance.request, progress.operation)
    if after.wanted != instance.wanted:
        after = replace(after, wanted_at=now)
    if after.phase == Phase.RUNNING and instance.phase != Phase.RUNNING:
        after = replace(after, running_since=now, stop_at=after.stop_at or _stop_at(after, now))
    if after.phase not in (Phase.RUNNING, Phase.AWAY):
        after = replace(after, running_since=None)
    if after.phase == Phase.GONE:
        after = replace(after, gone_at=now)
    return _settled(holding(after))


def _stop_at(instance: Instance, now: datetime) -> datetime | None:
    seconds = instance.spec.time_limit_seconds
    return None if seconds is None else now + timedelta(seconds=seconds)


def started(instance: Instance, held: Held, now: datetime) -> Instance:
    """A stopped instance that should run again."""
    return replace(
        withdrawn(instance),
        wanted=Wanted.RUNNING,
        wanted_at=now,
        held=held,
        exit_code=None,
        problem="",
        problem_operator="",
        hold=None,
        command_run=instance.command_run + (instance.access == Access.COMMAND),
        stop_at=None,
        stop_told=False,
    )


def withdrawn(instance: Instance) -> Instance:
    """The instance without a notice to leave, and without a wait for cards."""
    how = instance.preemptible
    if how is None or (how.leaving_at is None and how.waits_since is None):
        return instance
    return replace(instance, preemptible=replace(how, leaving_at=None, waits_since=None), notice="")


def ended(instance: Instance, at: datetime) -> Instance:
    """The instance when its command ended or its time limit was reached: it stops, or is deleted if that was asked."""
    if instance.wanted == Wanted.GONE:
        return instance
    wanted = Wanted.GONE if instance.spec.delete_when_done else end_of(instance)
    first = instance.wanted_at if instance.wanted == Wanted.STOPPED else asked_at(instance, at)
    return replace(withdrawn(instance), wanted=wanted, wanted_at=first)  # the first request counts


def deletes_itself(instance: Instance) -> bool:
    """Whether an instance was deleted when its command ended: as asked, or since its site keeps no stopped machine."""
    return instance.spec.delete_when_done or (not instance.spec.keeps_disk and instance.exit_code is not None)


def allows(instance: Instance, capability: Capability) -> bool:
    """Whether the way it was bought allows what its site can do: some machines cannot be stopped."""
    return capability != Capability.STOP or instance.spec.keeps_disk


def end_of(instance: Instance) -> Wanted:
    """What an instance that must not run any more should become: stopped, or gone if its site cannot keep its disk."""
    return Wanted.STOPPED if instance.spec.keeps_disk else Wanted.GONE


def with_next_place(instance: Instance, now: datetime) -> Instance:
    """The instance with its launch begun again at the next place, after it was undone at a place without room."""
    assert instance.progress is not None, "only an instance with a launch has a next place"
    before = instance.progress
    progress = Progress(operation=before.operation, since=now, tries=before.tries + 1)
    return replace(at_candidate(instance, instance.candidate + 1), progress=progress, due_at=now)


def is_last_place(instance: Instance) -> bool:
    """Whether a launch has tried all allowed places. One that is created again may have to stay in its place, and any
    other operation stays with the machine that exists."""
    rental, progress = instance.spec.rental, instance.progress
    if progress is not None and progress.operation != Operation.LAUNCH:
        return True
    stays = instance.request is not None and instance.spec.restart_policy != RestartPolicy.ELSEWHERE
    return rental is None or progress is None or stays or progress.tries + 1 >= len(places(rental))


def given_up(instance: Instance, problem: str) -> Instance:
    """The instance when its machine and disk are lost, and it must not be created again."""
    failed = replace(moved(instance, Phase.FAILED), problem=problem, problem_operator="", request=None)
    return _settled(holding(replace(failed, running_since=None)))


def lost_for_good(instance: Instance, problem: str, now: datetime) -> Instance:
    """The instance when its host will never return: gone if it was being deleted, otherwise failed."""
    idle = replace(instance, progress=None, request=None)
    if instance.wanted == Wanted.GONE:
        return finished(begun(idle, Operation.DELETE, now), now=now)
    return given_up(idle, problem)


def asked_at(instance: Instance, now: datetime) -> datetime:
    """From when a request to end counts: not after the time limit, even if no server noticed it in time."""
    is_limited = instance.wanted == Wanted.RUNNING and instance.stop_at is not None
    return min(now, instance.stop_at) if is_limited and instance.stop_at else now


def notice_before(time_limit_seconds: int) -> timedelta:
    """How long before the end of a time limit the event is recorded."""
    tenth = timedelta(seconds=time_limit_seconds) / 10
    return min(TIME_LIMIT_NOTICE_MAX, max(TIME_LIMIT_NOTICE_MIN, tenth))


def lost(instance: Instance) -> Instance:
    """The instance when its host is lost: if it ran, it is away. It keeps its journal and its cards."""
    return moved(instance, Phase.AWAY) if instance.phase in BILLABLE else instance


def returned(instance: Instance, now: datetime) -> Instance:
    """The instance that was away, when its host is back.

    Its operation starts again from the first step, because the host may have rebooted, and steps may run twice. An
    operation that is being undone continues where it was.
    """
    progress = instance.progress
    during = COURSES[progress.operation].during if progress else None
    back = moved(instance, during or Phase.RUNNING)
    if progress is not None:
        step = progress.step if progress.undoing else ""
        progress = replace(progress, step=step, since=now, attempts=0)
    since = instance.running_since or now
    return replace(back, progress=progress, running_since=since, due_at=now, problem="", problem_operator="")


def _answers(operation: Operation, request: Request | None) -> bool:
    """Whether an operation fulfils a request: it was the requested one, or it started or removed the instance."""
    if request is None or operation == request.operation:
        return True
    return operation in (Operation.LAUNCH, Operation.START, Operation.DELETE)


def _after_stop(request: Request) -> Request | None:
    """What remains of a request after a stop. A new shape is applied at the next start."""
    if request.operation == Operation.RESTORE_RESTART:
        return replace(request, operation=Operation.RESTORE)
    lasting = (Operation.SNAPSHOT, Operation.RESTORE, Operation.PUBLISH, Operation.LAUNCH)
    return request if request.operation in lasting else None


def _with_cards(instance: Instance, request: Request, *, undone: bool) -> Instance:
    """Keep the right cards after a resize, which holds the old and the new ones until it ends."""
    if request.shape_before is None:
        return instance
    stay = request.slots_before if undone else request.slots_after
    cards = tuple(card for card in instance.held.gpus if card.slot in stay)
    return replace(instance, held=replace(instance.held, gpus=cards))


def _taken_back(instance: Instance, request: Request | None, operation: Operation) -> Instance:
    if request and request.shape_before and request.operation == operation:
        return replace(instance, shape=request.shape_before)
    if operation in (Operation.START, Operation.RESTART):
        return replace(instance, wanted=Wanted.STOPPED)
    return instance


def holding(instance: Instance) -> Instance:
    """The instance with what it holds in its phase. While it runs, that is its shape."""
    held = instance.held
    if instance.phase in ENDED:
        return replace(instance, held=Held(), address=None, more_addresses=(), volumes=(), host_id=None)
    if instance.phase == Phase.STOPPED and instance.wanted != Wanted.RUNNING:
        kept = replace(held, vcpus=0, ram_bytes=0, disk_bytes=instance.shape.disk_bytes, gpus=())
        return replace(instance, held=kept)
    shape = instance.shape
    return replace(
        instance,
        held=replace(held, vcpus=shape.vcpus, ram_bytes=shape.ram_bytes, disk_bytes=shape.disk_bytes),
    )


def _settled(instance: Instance) -> Instance:
    return replace(instance, settled=next_operation(instance) is None)


def settled(instance: Instance) -> Instance:
    """The instance, marked as settled if there is nothing to do."""
    return _settled(instance) if instance.progress is None else replace(instance, settled=False)


def retry_after(attempts: int) -> timedelta:
    return timedelta(seconds=min(RETRY_SECONDS * 2 ** min(attempts, 10), RETRY_SECONDS_MAX))
