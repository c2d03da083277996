"""Traces rewritten for `torch.compile`: valid, with the same library calls, and with the memory that was measured."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teraflock.estimate.estimator import Estimator
from teraflock.workload.compiled import compiled
from teraflock.workload.fusing import is_library_call
from teraflock.workload.masked import with_scores
from teraflock.workload.model import Workload
from teraflock.workload.trace import EVENT_KINDS, FUSED, EventKind, Mark, Trace
from teraflock.workload.zoo import trace_for, with_sizes

MODELS = ("resnet18", "efficientnet_b0", "gpt2", "llama-1b", "bert-base", "convnext_tiny", "qwen2.5-0.5b")
PRECISIONS = ("fp32", "bf16", "amp-bf16")


def workload(model: str, task: str = "train", precision: str = "amp-bf16", batch: int = 8) -> Workload:
    return with_sizes(
        Workload(model=model, task=task, batch=batch, precision=precision, optimizer="sgd", seq=None)
    )


def names(trace: Trace) -> Counter[str]:
    """Of the operations of the step."""
    step = trace.events[trace.events.index(Mark.STEP * EVENT_KINDS + EventKind.MARK) :]
    events = [event // EVENT_KINDS for event in step if event % EVENT_KINDS == EventKind.OPERATE]
    return Counter(trace.operations[at].name for at in events)


@settings(max_examples=15)
@given(st.sampled_from(MODELS), st.sampled_from(("train", "infer")), st.sampled_from(PRECISIONS))
def test_a_compiled_trace_is_valid_and_keeps_its_library_calls(model: str, task: str, precision: str) -> None:
    trace = trace_for(workload(model, task, precision))
    found = compiled(trace)
    leaked(found)
    before, after = names(trace), names(found)
    library = {name: count for name, count in before.items() if is_library_call(name)}
    assert {name: count for name, count in after.items() if name != FUSED} == library
    assert 0 < after[FUSED] <= before.total() - sum(library.values())


def test_parameters_gradients_and_marks_stay() -> None:
    trace = trace_for(workload("gpt2"))
    found = compiled(trace)
    for letter in "pig":
        assert found.kinds.count(letter) == trace.kinds.count(letter)
    marks = [event for event in trace.events if event % EVENT_KINDS == EventKind.MARK]
    assert [event for event in found.events if event % EVENT_KINDS == EventKind.MARK] == marks


def test_the_optimizer_of_a_traced_script_is_not_compiled() -> None:
    trace = trace_for(workload("resnet18", precision="fp32"))
    relu = next(at for at, each in enumerate(trace.operations) if each.name.startswith("relu"))
    step = [Mark.OPTIMIZER * EVENT_KINDS + EventKind.MARK, relu * EVENT_KINDS + EventKind.OPERATE]
    found = compiled(msgspec.structs.replace(trace, events=trace.events + step))
    assert names(found)[trace.operations[relu].name] == 1


def test_what_an_earlier_step_freed_is_not_there_under_compile() -> None:
    """A script's first steps are recorded without compilation and need more memory than any step has."""
    trace = trace_for(workload("resnet18"))
    earlier = [EventKind.ALLOCATE, EVENT_KINDS + EventKind.FREE]  # of the first size
    longer = msgspec.structs.replace(trace, events=earlier + trace.events, kinds="a" + trace.kinds)
    assert compiled(longer) == compiled(trace)


@pytest.mark.parametrize(
    ("model", "words", "measured"),
    [
        ("llama-1b", {"batch": 4, "seq": 1024, "precision": "amp-bf16", "optimizer": "adam"}, 26479193600),
        ("llama-3b", {"batch": 4, "seq": 128, "precision": "bf16", "optimizer": "adam"}, 32201428992),
        ("gpt2-large", {"batch": 4, "seq": 256, "precision": "fp32", "optimizer": "adamw"}, 15914744832),
        ("vgg19", {"task": "infer", "batch": 512, "precision": "amp-bf16"}, 7494690304),
        ("efficientnet_b4", {"batch": 8, "precision": "fp32", "optimizer": "sgd"}, 3460500992),
        ("resnet152", {"batch": 16, "precision": "amp-bf16", "optimizer": "sgd"}, 2112011264),
    ],
)
def test_live_peak_under_compile_is_near_the_measured_one(
    model: str, words: dict[str, object], measured: int
) -> None:
    estimator = Estimator(Workload(model=model, compile=True, **words))  # type: ignore[arg-type]
    assert estimator.memory().live_peak_bytes == pytest.approx(measured, rel=0.035)


def test_a_compiled_encoder_keeps_the_scores_of_its_attention() -> None:
    """Measured on an H200: bert-large, 4 x 512 tokens, AdamW."""
    found = Estimator(
        Workload(model="bert-large", batch=4, seq=512, precision="amp-bf16", optimizer="adamw", compile=True)
    ).memory()
    assert found.live_peak_bytes == pytest.approx(9_093_452_288, rel=0.02)


@settings(max_examples=8)
@given(
    st.sampled_from(("bert-base", "distilbert")),
    st.sampled_from(("train", "infer")),
    st.sampled_from(PRECISIONS),
)
def test_an_encoder_with_scores_frees_what_it_allocates(model: str, task: str, precision: str) -> None:
    trace = trace_for(workload(model, task, precision))
    found = with_scores(trace)
    assert not any("attention" in name for name in names(found))
    assert len(leaked(found)) == len(leaked(trace))


def leaked(trace: Trace) -> set[int]:
    """Storages that are never freed. Fails for one that is freed twice or never existed."""
    live: set[int] = set()
    born = 0
    for event in trace.events:
        kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
        if kind == EventKind.ALLOCATE:
            assert 0 <= argument < len(trace.expressions)
            live.add(born)
            born += 1
        elif kind == EventKind.FREE:
            live.remove(born - argument)
    assert len(trace.kinds) == born
    return live
