"""Matrix products have one workspace for each thread: that of backward passes, and that of everything else."""

from hypothesis import given
from hypothesis import strategies as st

from teraflock.estimate.allocator import CachingAllocator
from teraflock.estimate.fitting import _Steps
from teraflock.estimate.memory import Scene, plain_peak, replay
from teraflock.workload.trace import EVENT_KINDS, EventKind, Mark, Tensor, Trace, TracedOperation

WORKSPACE = 32 << 20
BLOCK = 512
PASSES = {"f": Mark.FORWARD, "b": Mark.BACKWARD}


def scene_of(passes: list[tuple[str, bool]], setup: int) -> Scene:
    """A script with these passes; each multiplies matrices or adds. The first `setup` are before the step."""
    square = Tensor("f", [0, 0])
    events = []
    for place, (name, multiplies) in enumerate(passes):
        if place == setup:
            events += [Mark.STEP * EVENT_KINDS + EventKind.MARK, 1 * EVENT_KINDS + EventKind.ALLOCATE]
        events.append(PASSES[name] * EVENT_KINDS + EventKind.MARK)
        events.append(int(multiplies) * EVENT_KINDS + EventKind.OPERATE)
    made = Trace(
        name="script",
        torch="",
        symbols={},
        expressions=[64, BLOCK],
        operations=[TracedOperation(each, [square, square], [square]) for each in ("add", "mm")],
        parameters=[],
        events=events,
        kinds="a",
        has_optimizer=True,
        has_backward=True,
        precision="fp32",
        views=0,
        samples=1,
    )
    return Scene(made, {}, {})


@given(
    passes=st.lists(st.tuples(st.sampled_from(sorted(PASSES)), st.booleans()), min_size=1, max_size=9),
    data=st.data(),
)
def test_each_thread_that_multiplies_has_one_workspace(
    passes: list[tuple[str, bool]], data: st.DataObject
) -> None:
    scene = scene_of(passes, data.draw(st.integers(0, len(passes) - 1)))
    threads = {name for name, multiplies in passes if multiplies}
    wanted = BLOCK + WORKSPACE * len(threads)
    assert replay(scene, "none", cublas_bytes=WORKSPACE).live_peak_bytes == wanted
    assert plain_peak(scene, "none", cublas_bytes=WORKSPACE) == wanted
    steps = _Steps(scene, WORKSPACE, CachingAllocator(None), 1.0)
    steps.run("none")
    assert len(steps.handles) == len(threads)
