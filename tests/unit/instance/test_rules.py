"""An instance settles and holds what its phase allows, whatever tenants ask for and whichever steps fail."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.instance.samples import NOW, queued, shapes, slots, standing

from teraflock.base.size import Size
from teraflock.instance.model import Held, Instance, Operation, Request
from teraflock.instance.rules import begun, finished, next_operation, overtaken, settled
from teraflock.instance.states import Phase, Wanted
from teraflock.instance.steps import STEPS, UNDOABLE, next_step, step_before, step_to_undo

OPERATIONS_MAX = 6
"""More operations in a row without a new request would be an endless loop."""


def ended(instance: Instance, *, works: bool) -> Instance:
    assert instance.progress is not None
    undone = not works and instance.progress.operation in UNDOABLE
    return finished(replace(instance, progress=replace(instance.progress, undoing=undone)), now=NOW)


def carried_out(instance: Instance, *, works: bool) -> Instance:
    """Run all operations that follow. Either every operation fails that can, or none."""
    for _ in range(OPERATIONS_MAX):
        operation = next_operation(instance)
        if operation is None:
            return settled(instance)
        instance = ended(begun(instance, operation, NOW), works=works)
        check_holding(instance)
    raise AssertionError(
        f"{instance.phase} and wanted {instance.wanted}, but never settles: {instance.request}"
    )


def check_holding(instance: Instance) -> None:
    held, shape = instance.held, instance.shape
    if instance.phase in (Phase.FAILED, Phase.GONE):
        assert (held, instance.address, instance.host_id) == (Held(), None, None)
    elif instance.phase == Phase.STOPPED and instance.wanted != Wanted.RUNNING:
        assert (held.vcpus, held.ram_bytes, held.gpus) == (0, 0, ())
        assert held.disk_bytes == shape.disk_bytes
    elif instance.phase == Phase.RUNNING:
        assert (held.vcpus, held.ram_bytes, held.disk_bytes) == (
            shape.vcpus,
            shape.ram_bytes,
            shape.disk_bytes,
        )
        assert len(held.gpus) == shape.gpus


def wish(instance: Instance, word: str, shape: Size) -> Instance:
    """The change that the service makes for a request, in the phases that allow it."""
    idle = instance.request is None
    if word == "stop" and instance.phase in (Phase.RUNNING, Phase.STOPPED):
        return replace(instance, wanted=Wanted.STOPPED)
    if word == "start" and instance.phase == Phase.STOPPED and instance.wanted == Wanted.STOPPED:
        here = instance.shape
        held = replace(
            instance.held,
            vcpus=here.vcpus,
            ram_bytes=here.ram_bytes,
            disk_bytes=here.disk_bytes,
            gpus=slots(here.gpus),
        )
        return replace(instance, wanted=Wanted.RUNNING, held=held)
    if word == "delete":
        return replace(instance, wanted=Wanted.GONE)
    if word == "resize" and instance.phase == Phase.RUNNING and idle:
        return resized(instance, replace(shape, disk_bytes=instance.shape.disk_bytes))
    if word in ("restart", "snapshot") and instance.phase == Phase.RUNNING and idle:
        return replace(instance, request=Request(operation=Operation(word)))
    if word == "refit" and instance.phase == Phase.RUNNING and idle:
        return replace(instance, request=Request(operation=Operation.REFIT))
    if word == "drift" and instance.phase == Phase.RUNNING and idle:
        return replace(instance, request=Request(operation=Operation.START))
    return instance


def resized(instance: Instance, shape: Size) -> Instance:
    before = instance.held.gpus
    more = slots(max(0, shape.gpus - len(before)), first=len(before) + 1)
    every = (*before, *more)
    request = Request(
        operation=Operation.RESIZE_RESTART if shape.gpus != len(before) else Operation.RESIZE,
        shape_before=instance.shape,
        slots_before=tuple(card.slot for card in before),
        slots_after=tuple(card.slot for card in every[: shape.gpus]),
    )
    held = replace(
        instance.held,
        gpus=every,
        vcpus=max(shape.vcpus, instance.held.vcpus),
        ram_bytes=max(shape.ram_bytes, instance.held.ram_bytes),
    )
    return replace(instance, shape=shape, held=held, request=request)


words = st.sampled_from(["stop", "start", "delete", "resize", "restart", "snapshot", "drift", "refit"])


@given(shapes, st.lists(st.tuples(words, shapes, st.booleans()), min_size=1, max_size=8))
def test_instance_always_settles(first: Size, wishes: list[tuple[str, Size, bool]]) -> None:
    instance = carried_out(queued(first), works=True)
    for word, shape, works in wishes:
        instance = carried_out(wish(instance, word, shape), works=works)
        assert instance.settled
        assert instance.phase in (Phase.RUNNING, Phase.STOPPED, Phase.FAILED, Phase.GONE)
        if instance.wanted == Wanted.GONE:
            assert instance.phase == Phase.GONE


def test_failed_launch_holds_nothing() -> None:
    failed = carried_out(
        queued(Size(gpu="V100-SXM2", gpus=2, vcpus=1, ram_bytes=1, disk_bytes=1)), works=False
    )
    assert (failed.phase, failed.held, failed.settled) == (Phase.FAILED, Held(), True)


@given(shapes, shapes)
def test_failed_resize_changes_nothing(first: Size, second: Size) -> None:
    running = ended(begun(queued(first), Operation.LAUNCH, NOW), works=True)
    asked = resized(running, replace(second, disk_bytes=first.disk_bytes))
    operation = next_operation(asked)
    assert operation is not None
    back = ended(begun(asked, operation, NOW), works=False)
    if (again := next_operation(back)) is not None:
        back = ended(begun(back, again, NOW), works=True)
    assert (back.shape, back.held, back.phase) == (running.shape, running.held, Phase.RUNNING)


def test_delete_replaces_every_other_operation() -> None:
    for operation in Operation:
        phase = Phase.STOPPED if operation == Operation.RESTORE else Phase.RUNNING
        if operation in (Operation.LAUNCH, Operation.START):
            phase = Phase.STOPPED
        working = replace(begun(standing(phase), operation, NOW), wanted=Wanted.GONE)
        assert overtaken(working) == (operation != Operation.DELETE)


def test_steps_run_in_order_and_are_undone_in_reverse() -> None:
    for operation, steps in STEPS.items():
        names = [step.name for step in steps]
        assert len(set(names)) == len(names)
        done, walked = "", []
        while step := next_step(operation, done):
            walked.append(step.name)
            done = step.name
        assert walked == names
        back = []
        while step := step_to_undo(operation, done):
            back.append(step.name)
            done = step_before(operation, step.name)
        assert back == names[::-1]


def test_step_without_undo_has_a_reason() -> None:
    for steps in STEPS.values():
        for step in steps:
            assert (step.undo is None) == bool(step.because), step.name
