"""Trace files: read back as written, and everything else refused in one sentence."""

import pytest

from teraflock.base.errors import BadInput
from teraflock.workload.expression import evaluate
from teraflock.workload.trace import Trace, read_trace, write_trace

TRACE = Trace(
    name="x", torch="2", symbols={"batch": 2}, expressions=[4, ["*", "batch", 8]], operations=[], parameters=[],
    events=[3, 4, 5], kinds="a",
)  # fmt: skip


def test_a_trace_is_read_as_it_was_written() -> None:
    assert read_trace(write_trace(TRACE), name="x") == TRACE


@pytest.mark.parametrize("cut", [4, 15, 20, -1])
def test_a_trace_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(BadInput):
        read_trace(write_trace(TRACE)[:cut], name="job.trace")


def test_another_version_is_named() -> None:
    data = bytearray(write_trace(TRACE))
    data[8] = 9
    with pytest.raises(BadInput, match="version 9"):
        read_trace(bytes(data), name="job.trace")


def test_expressions_follow_whole_numbers() -> None:
    symbols = {"batch": 3, "image": 225}
    assert evaluate(["*", "batch", ["+", ["//", ["+", "image", -1], 2], 1]], symbols) == 3 * 113
    assert evaluate(["max", ["%", "image", 7], ["**", "batch", 2]], symbols) == 9


@pytest.mark.parametrize("wrong", [["//", 1, 0], ["**", 2, 99], ["import", 1], [], "rows", None, 1.5])
def test_an_expression_is_data_and_never_code(wrong: object) -> None:
    with pytest.raises(BadInput):
        evaluate(wrong, {"batch": 1})
