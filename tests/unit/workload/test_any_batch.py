"""Traces with several batches become one for any batch; and how a script gets another batch."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.workload.any_batch import DifferentWork, merged, through
from teraflock.workload.expression import evaluate
from teraflock.workload.trace import EVENT_KINDS, EventKind, Mark, Parameter, Tensor, Trace, TracedOperation
from teraflock.workload.tracing.batch_change import BatchChange, changed_code, ways, with_larger_batch

BATCHES = (8, 16, 24)


@given(
    bend=st.integers(0, 9),
    slope=st.integers(0, 999),
    constant=st.integers(1, 999),
    batch=st.integers(1, 10_000),
)
def test_lines_and_parabolas_are_found(bend: int, slope: int, constant: int, batch: int) -> None:
    def value(batch: int) -> int:
        return bend * batch**2 + slope * batch + constant

    found = through(BATCHES, [value(each) for each in BATCHES])
    assert evaluate(found, {"batch": batch}) == value(batch)


@given(values=st.tuples(*[st.integers(1, 1 << 40)] * 3))
def test_any_size_holds_at_the_smallest_and_largest_recorded_batch_and_is_positive(
    values: tuple[int, int, int],
) -> None:
    found = through(BATCHES, values)
    assert evaluate(found, {"batch": BATCHES[0]}) == values[0]
    assert evaluate(found, {"batch": BATCHES[2]}) == values[2]
    for batch in (1, 1000):
        if sorted(values) == list(values):
            assert evaluate(found, {"batch": batch}) > 0


def recorded(batch: int, **changes: Any) -> Trace:
    """A step that reads a batch of 8 numbers each, multiplies by a matrix of 8 × 8, and frees the batch."""
    allocate, free, operate, mark = (int(each) for each in EventKind)
    words: dict[str, Any] = {
        "name": "job", "torch": "2.13.0", "symbols": {}, "expressions": [256, 8, 32 * batch, batch],
        "operations": [TracedOperation("mm", [Tensor("f", [3, 1]), Tensor("f", [1, 1])], [Tensor("f", [3, 1])])],
        "parameters": [Parameter([1, 1], "f", True)],
        "events": [
            0 * EVENT_KINDS + allocate, Mark.STEP * EVENT_KINDS + mark, 2 * EVENT_KINDS + allocate,
            2 * EVENT_KINDS + allocate, 0 * EVENT_KINDS + operate, 2 * EVENT_KINDS + free,
        ],
        "kinds": "pia", "samples": batch,
    }  # fmt: skip
    return Trace(**{**words, **changes})


def test_merged_trace_has_the_sizes_of_any_batch() -> None:
    made = merged([recorded(each) for each in BATCHES])
    assert made.symbols == {"batch": 8}
    assert made.samples == 0
    for batch in (1, 8, 100):
        sizes = [evaluate(each, {"batch": batch}) for each in made.expressions]
        known = recorded(batch)
        for mine, theirs in zip(made.events, known.events, strict=True):
            assert mine % EVENT_KINDS == theirs % EVENT_KINDS
            if mine % EVENT_KINDS == EventKind.ALLOCATE:
                assert sizes[mine // EVENT_KINDS] == known.expressions[theirs // EVENT_KINDS]
        (operation,) = made.operations
        assert [sizes[each] for each in operation.inputs[0].shape] == [batch, 8]


def test_batch_that_equals_a_width_is_told_apart_from_it() -> None:
    """With a batch of 8, the batch and the width are one expression in the first trace."""
    first = msgspec.structs.replace(
        recorded(8),
        expressions=[256, 8],
        operations=[TracedOperation("mm", [Tensor("f", [1, 1]), Tensor("f", [1, 1])], [Tensor("f", [1, 1])])],
        events=[each if each % EVENT_KINDS else 0 for each in recorded(8).events],
    )
    made = merged([first, recorded(16), recorded(24)])
    sizes = [evaluate(each, {"batch": 5}) for each in made.expressions]
    assert [sizes[each] for each in made.operations[0].inputs[0].shape] == [5, 8]


@pytest.mark.parametrize(
    "other",
    [
        {"samples": 8},
        {"samples": 0},
        {"kinds": "pit"},
        {"events": recorded(16).events[:-1]},
        {"events": [*recorded(16).events[:-1], 1 * EVENT_KINDS + 1]},
        {"operations": [msgspec.structs.replace(recorded(16).operations[0], name="bmm")]},
        {"operations": [msgspec.structs.replace(recorded(16).operations[0], inputs=[])]},
        {"operations": [msgspec.structs.replace(recorded(16).operations[0], outputs=[Tensor("b", [3, 1])])]},
        {"parameters": []},
        {"expressions": [256, 8, "batch", 16]},
    ],
)
def test_traces_of_different_work_are_not_merged(other: dict[str, Any]) -> None:
    with pytest.raises(DifferentWork):
        merged([recorded(8), recorded(16, **other), recorded(24)])


@pytest.mark.parametrize(
    ("arguments", "larger"),
    [
        (["--batch-size", "32"], ["--batch-size", "96"]),
        (["--batch_size=32", "--lr", "1"], ["--batch_size=96", "--lr", "1"]),
        (["-b", "32"], ["-b", "96"]),
        (["data.batch_size=4"], ["data.batch_size=12"]),
        (["--per_device_train_batch_size", "4", "--lr", "3"], ["--per_device_train_batch_size", "12", "--lr", "3"]),
        (["--eval-batch-size", "8"], ["--eval-batch-size", "8"]),
        (["--num-batches", "8"], ["--num-batches", "8"]),
        (["--batch-size"], ["--batch-size"]),
        (["--batch-size", "auto"], ["--batch-size", "auto"]),
    ],
)  # fmt: skip
def test_batch_among_the_arguments_is_multiplied(arguments: list[str], larger: list[str]) -> None:
    assert with_larger_batch(arguments, 3) == larger


def test_argument_is_preferred_to_a_loader_and_a_loader_to_a_name() -> None:
    assert ways(["--batch-size", "8"], 2) == [BatchChange(argument=2)]
    assert ways(["--lr", "8"], 2) == [BatchChange(loader=2), BatchChange(source=2)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("batch_size = 4; x = batch_size", 12),
        ("class A: pass\nA.batch_size = 4\nx = A.batch_size", 12),
        ("lr, bs = 1, 4; x = bs", 12),
        ("batch_size: int = 4; x = batch_size", 12),
        ("def f(batch_size=4): return batch_size\nx = f()", 12),
        ("def f(*, batch=4): return batch\nx = f()", 12),
        ("x = dict(batch_size=4)['batch_size']", 12),
        ("import argparse\np = argparse.ArgumentParser()\np.add_argument('--batch-size', type=int, default=4)\n"
         "x = p.parse_args([]).batch_size", 12),
        ("batches_max = 4; x = eval_batch = 4", 4),
        ("batch_first = True; x = 4", 4),
    ],
)  # fmt: skip
def test_batch_in_the_source_is_multiplied(text: str, value: int) -> None:
    names: dict[str, Any] = {}
    exec(changed_code(text, "train.py", 3), names)
    assert names["x"] == value
