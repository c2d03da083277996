"""Timelines of host and GPU: the stored corners give the same time as a replay of every operation."""

from collections.abc import Sequence
from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teraflock.catalog.cards import card
from teraflock.estimate.host import (
    CORRECTION,
    CORRECTION_SECONDS,
    LIST,
    LIST_SECONDS,
    PINNED,
    Timelines,
    divided,
    issued,
    seconds_of,
)
from teraflock.estimate.memory import Scene
from teraflock.estimate.operation import Work, work
from teraflock.estimate.speed import PEAKS_H200, measured
from teraflock.estimate.step import (
    FOREACH,
    HOSTS,
    OWN,
    SHARED,
    Host,
    Seconds,
    StepWork,
    matrix_seconds,
    optimizer_works,
    spread,
)
from teraflock.estimate.survey import Survey
from teraflock.workload.model import Workload
from teraflock.workload.trace import (
    EVENT_KINDS,
    READ_VALUE,
    TO_GPU,
    TO_HOST,
    EventKind,
    Mark,
    Tensor,
    Trace,
    TracedOperation,
)
from teraflock.workload.zoo import symbols_for, trace_for

SECONDS = st.floats(0, 1e-3) | st.just(0.0)


def scene(model: str, *, batch: int = 4, seq: int | None = None, **words: object) -> Scene:
    workload = Workload(model=model, batch=batch, seq=seq, **words)  # type: ignore[arg-type]
    trace = trace_for(workload)
    return Scene(trace, symbols_for(workload, trace), {})


@given(
    pairs=st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=40),
    factor=st.floats(0.05, 20),
    pace=st.floats(0.3, 4),
)
def test_corners_match_a_full_replay(pairs: list[tuple[float, float]], factor: float, pace: float) -> None:
    host = gpu = 0.0
    for issue, run in pairs:
        host += pace * issue
        gpu = max(gpu, host) + factor * run
    assert isclose(Timelines(pairs).seconds(factor, pace), max(host, gpu), rel_tol=1e-9, abs_tol=1e-12)


@given(pairs=st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=40), factor=st.floats(0.05, 20))
def test_a_step_is_between_the_longer_timeline_and_their_sum(
    pairs: list[tuple[float, float]], factor: float
) -> None:
    lines = Timelines(pairs)
    least = max(lines.host_seconds, factor * lines.gpu_seconds)
    assert least - 1e-12 <= lines.seconds(factor) <= lines.host_seconds + factor * lines.gpu_seconds + 1e-12


def wait_of(bytes_: int, name: str, attributes: Sequence[int] = ()) -> Work:
    return work(name, [("u", [bytes_], True)], [], attributes)


READING, COPY = wait_of(4, READ_VALUE), wait_of(1 << 20, TO_GPU, [1, 0])
UNBLOCKED = wait_of(1 << 20, TO_GPU, [1, 1])
WORKS = [work("add", [("f", [8], True)], [("f", [8], True)], ()), READING, COPY, UNBLOCKED]


@given(
    steps=st.lists(st.tuples(st.integers(0, 3), SECONDS, SECONDS), min_size=1, max_size=40),
    factor=st.floats(0.05, 20),
    pace=st.floats(0.3, 4),
)
def test_a_host_that_reads_a_value_waits_for_the_gpu(
    steps: list[tuple[int, float, float]], factor: float, pace: float
) -> None:
    host = gpu = 0.0
    for index, issue, run in steps:
        host += pace * issue
        gpu = max(gpu, host) + factor * run
        if WORKS[index] in (READING, COPY):
            host = gpu = max(host, gpu)
        if WORKS[index] in (COPY, UNBLOCKED):
            host += pace * (1 << 20) / PINNED
    order, pairs = [(index, 0) for index, _, _ in steps], [(issue, run) for _, issue, run in steps]
    parts = [Timelines(each) for each in divided(WORKS, order, pairs)]
    together = sum(each.seconds(factor, pace) for each in parts)
    assert isclose(together, max(host, gpu), rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("made", "waits"),
    [
        (READING, True),
        (COPY, True),
        (UNBLOCKED, False),
        (wait_of(1 << 20, TO_GPU, [0, 1]), True),
        (wait_of(1 << 10, TO_GPU, [0, 1]), False),
        (wait_of(1 << 20, TO_HOST), True),
    ],
    ids=["read", "pinned", "pinned, unblocked", "unblocked", "small, unblocked", "to the host"],
)
def test_which_copies_the_host_waits_for(made: Work, waits: bool) -> None:
    assert bool(made.dims[0]) is waits
    assert not made.kernel


def traced(events: Sequence[tuple[EventKind, int]], tensors: int) -> Trace:
    values = Tensor("f", [0, 0])
    return Trace(
        name="",
        torch="",
        symbols={},
        expressions=[1024],
        operations=[
            TracedOperation("relu", [values], [values]),
            TracedOperation("_foreach_add_", [values], [], [tensors]),
        ],
        parameters=[],
        events=[argument * EVENT_KINDS + kind for kind, argument in events],
        kinds="",
        has_optimizer=True,
    )


MARKED = (Mark.STEP, Mark.PLAIN, Mark.RECORDED, Mark.FORWARD)


@given(
    events=st.lists(
        st.tuples(st.just(EventKind.MARK), st.sampled_from(MARKED))
        | st.tuples(st.just(EventKind.OPERATE), st.just(0))
    )
)
def test_operations_without_gradients_cost_as_in_inference(events: list[tuple[EventKind, int]]) -> None:
    trace = traced([(EventKind.MARK, Mark.STEP), *events, (EventKind.OPERATE, 0)], 1)
    is_plain, wanted = False, {"infer_operation": 0.0, "forward_operation": 0.0}
    for kind, argument in [*events, (EventKind.OPERATE, 0)]:
        if kind == EventKind.MARK:
            is_plain = argument == Mark.PLAIN
        else:
            wanted["infer_operation" if is_plain else "forward_operation"] += 1
    step = issued(Scene(trace, {}, {}), "adamw", 0)
    total = {kind: sum(step.groups[at].get(kind, 0.0) for _, at in step.order) for kind in wanted}
    assert total == wanted


@given(passes=st.integers(1, 5), lists=st.integers(1, 15), tensors=st.integers(1, 300))
def test_every_step_of_an_optimizer_costs_by_its_tensors(passes: int, lists: int, tensors: int) -> None:
    one = [
        (EventKind.MARK, Mark.OPTIMIZER),
        *[(EventKind.OPERATE, 1)] * lists,
        (EventKind.MARK, Mark.FORWARD),
    ]
    trace = traced([(EventKind.MARK, Mark.STEP), *one * passes], tensors)
    step = issued(Scene(trace, {}, {}), "adamw", 0)
    assert sum(step.groups[at][LIST] for _, at in step.order) == passes * lists * tensors


@pytest.mark.parametrize(("optimizer", "own"), [("sgd", "sgd"), ("adam", "adam"), ("adamw", "adam")])
def test_an_optimizer_in_a_trace_costs_the_host_as_much_as_by_name(optimizer: str, own: str) -> None:
    tensors = 100
    values = Tensor("f", [0, 0])
    names = [name for name, _ in FOREACH[optimizer]]
    steps = [(EventKind.OPERATE, index) for index in range(len(names))]
    trace = traced([(EventKind.MARK, Mark.STEP), (EventKind.MARK, Mark.OPTIMIZER), *steps], tensors)
    operations = [TracedOperation(name, [values], [], [tensors]) for name in names]
    step = issued(Scene(replace(trace, operations=operations), {}, {}), optimizer, 0)
    seconds = {LIST: LIST_SECONDS, CORRECTION: CORRECTION_SECONDS}
    found = sum(
        step.groups[at].get(kind, 0.0) * each for _, at in step.order for kind, each in seconds.items()
    )
    assert found / tensors == pytest.approx(measured().host[own], rel=0.1)


@pytest.mark.parametrize(("model", "segments"), [("gpt2", 12), ("llama-1b", 16), ("t5-base", 24)])
def test_each_recomputed_layer_is_one_segment(model: str, segments: int) -> None:
    plain, again = (
        scene(model, seq=128, task="train", precision="bf16", gradient_checkpointing=checkpoint)
        for checkpoint in (False, True)
    )
    assert _total(again)["segment"] == pytest.approx(segments)
    assert "segment" not in _total(plain)
    # Python issues the recomputed operations, and autograd's own share does not change
    assert _total(again)["forward_operation"] > 1.5 * _total(plain)["forward_operation"]
    assert _total(again)["backward_operation"] == pytest.approx(_total(plain)["backward_operation"], rel=0.1)


@pytest.mark.parametrize("model", ["resnet50", "bert-base"])
def test_every_operation_view_and_parameter_is_counted_once(model: str) -> None:
    known = scene(model, seq=128 if model == "bert-base" else None, task="train", precision="amp-bf16")
    total = _total(known)
    count = sum(1 for _ in known.step_works())
    ends = ("operation", "convolution", "cast", "nothing")
    assert sum(weight for kind, weight in total.items() if kind.endswith(ends)) == pytest.approx(count)
    assert total["forward_view"] == pytest.approx(known.trace.views)
    assert total["gradient"] == pytest.approx(len(known.parameter_sizes()))
    step = issued(known, "adamw", 8)
    assert 8 * step.ending["adam"] == pytest.approx(len(known.parameter_sizes()))


def test_gradients_cost_the_host_and_a_device_context_costs_more() -> None:
    known = measured()
    look = scene("resnet50", task="infer", precision="fp32")
    train = scene("resnet50", task="train", precision="fp32")
    forward = {kind: each for kind, each in _total(train).items() if kind.startswith(("forward", "nothing"))}
    assert seconds_of(forward, known.host) > seconds_of(_total(look), known.host)
    plain, context = (
        StepWork(train, "adamw", known, "fp32", context=each).seconds(PEAKS_H200) for each in (False, True)
    )
    assert context > plain


def test_an_optimizer_with_more_list_operations_costs_more() -> None:
    known = scene("resnet50", task="train", precision="fp32")
    sgd, adam = (StepWork(known, each, measured(), "fp32").seconds(PEAKS_H200) for each in ("sgd", "adam"))
    assert len(optimizer_works("adam", known)) > len(optimizer_works("sgd", known))
    assert adam > sgd


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "adafactor"])
def test_own_cores_shorten_only_the_time_spent_waiting_for_the_host(optimizer: str) -> None:
    known = scene("resnet50", task="train", precision="fp32")
    shared, own = (StepWork(known, optimizer, measured(), "fp32", host=each) for each in HOSTS)
    assert own.waits_for_host(PEAKS_H200)
    assert own.seconds(PEAKS_H200) < 0.9 * shared.seconds(PEAKS_H200)
    for step in (shared, own):
        low, high = step.interval(PEAKS_H200)
        assert low < step.seconds(PEAKS_H200) < high
    slow = replace(PEAKS_H200, bandwidth=PEAKS_H200.bandwidth / 100, fp32=PEAKS_H200.fp32 / 100)
    slow = replace(slow, tf32=slow.tf32 / 100, half=slow.half / 100)
    if optimizer != "adafactor":  # Adafactor waits for both at every parameter
        assert own.seconds(slow) > 0.99 * shared.seconds(slow)
        assert not shared.waits_for_host(slow)


def test_products_of_single_numbers_have_their_own_cost() -> None:
    one, more = measured().matrix
    assert matrix_seconds([(64, 32, 1, 1), (64,), (64, 32)], [one, more]) == pytest.approx(64 * 32 * one)
    assert matrix_seconds([(64, 32, 3, 3)], [one, more]) == pytest.approx(64 * 32 * more)
    assert 0 < one < more < 1e-7


def _total(known: Scene) -> dict[str, float]:
    step = issued(known, "", 0)
    total: dict[str, float] = {}
    for _, group in step.order:
        for kind, weight in step.groups[group].items():
            total[kind] = total.get(kind, 0.0) + weight
    return total


def test_an_interval_is_wider_far_from_measured_operations() -> None:
    known = measured()
    (low, high), (low_far, high_far) = spread(known, 1.0), spread(known, 0.0)
    assert low_far < low < 0 < high < high_far
    assert spread(known, 0.0, 2.0) == (2 * low_far, 2 * high_far)
    widths = []
    for side in (224, 203):  # a measured size, and one far from all measurements
        images = scene("vgg16", batch=256, image_size=side, task="train", precision="fp32")
        quick, slow = StepWork(images, "sgd", known, "fp32", model="vgg16").interval(PEAKS_H200)
        widths.append(slow / quick)
    assert widths[0] < widths[1]


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["H200-SXM", "A100-SXM4-40", "TitanV"]),
    st.sampled_from([("train", 1), ("train", 64), ("infer", 1), ("infer", 64)]),
    st.lists(st.floats(0.1, 100), min_size=2, max_size=2).map(sorted),
)
def test_a_slower_host_never_gives_a_shorter_step(
    gpu: str, work: tuple[str, int], paces: list[float]
) -> None:
    task, batch = work
    survey = Survey(Workload(model="resnet18", task=task, batch=batch, optimizer="sgd"))
    quick, slow = (survey.seconds(card(gpu), pace) for pace in paces)
    assert quick
    assert slow
    assert quick.p10 <= slow.p10
    assert quick.p50 <= slow.p50
    assert quick.p90 <= slow.p90
    for each in (quick, slow):
        assert each.p10 <= each.p50 <= each.p90


def test_a_small_step_scales_with_the_stated_pace_and_a_large_one_does_not() -> None:
    def seconds(batch: int, host: Host) -> Seconds:
        found = Survey(Workload(model="resnet18", batch=batch, optimizer="sgd")).seconds(
            card("H200-SXM"), host
        )
        assert found
        return found

    assert seconds(1, 1.0) == seconds(1, OWN)
    assert seconds(1, 4.0).p50 == pytest.approx(2 * seconds(1, 2.0).p50, rel=0.01)
    assert seconds(512, 2.0).p50 == pytest.approx(seconds(512, 1.0).p50, rel=0.05)


def test_an_unknown_pace_widens_the_interval_of_a_step_that_waits_for_the_host() -> None:
    def width(batch: int, host: Host) -> float:
        found = Survey(Workload(model="resnet18", batch=batch, optimizer="sgd")).seconds(
            card("H200-SXM"), host
        )
        assert found
        return found.p90 / found.p10

    assert width(1, SHARED) > 1.15 * width(1, 1.3)
    assert width(1, SHARED) > width(512, SHARED)
