"""One trace for any batch, from traces of the same step with three batches.

The step allocates and computes the same things in the same order with every batch; only sizes differ. A size that is
linear in the batch is found from two traces and checked against the third. Any other size becomes the parabola through
all three: a contrastive loss compares every sample with every other one. Traces that differ in more than sizes, for
example because a library chose another kernel, cannot be merged.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import Final, TypeVar

import msgspec

from teraflock.workload.expression import Expression
from teraflock.workload.trace import EVENT_KINDS, EventKind, Parameter, Tensor, Trace, TracedOperation

BATCH: Final = "batch"
Each = TypeVar("Each")


class DifferentWork(Exception):
    """The traces differ in more than sizes."""


def merged(traces: Sequence[Trace]) -> Trace:
    """The trace for any batch. The first one gives the default batch and everything but sizes.

    Raise `DifferentWork` if the step does something else with another batch.
    """
    first = traces[0]
    batches = [each.samples for each in traces]
    if len(set(batches)) < len(batches) or not all(batches):
        raise DifferentWork
    if any(each.kinds != first.kinds or len(each.events) != len(first.events) for each in traces):
        raise DifferentWork
    sizes = _Sizes(traces, batches)
    events = [sizes.event(each) for each in zip(*(each.events for each in traces), strict=True)]
    parameters = [
        Parameter(sizes.shape([each.shape for each in same]), same[0].dtype, same[0].trainable)
        for same in _aligned([each.parameters for each in traces])
    ]
    seen = first.seen
    if seen is not None and seen.input_shape and seen.input_shape[0] == first.samples:
        seen = msgspec.structs.replace(seen, input_shape=[-1, *seen.input_shape[1:]])
    return msgspec.structs.replace(
        first, symbols={BATCH: first.samples}, expressions=sizes.expressions, operations=sizes.operations,
        parameters=parameters, events=events, samples=0, seen=seen,
    )  # fmt: skip


class _Sizes:
    """The expressions and operations of the merged trace."""

    def __init__(self, traces: Sequence[Trace], batches: Sequence[int]) -> None:
        self._traces = traces
        self._batches = batches
        self.expressions: list[Expression] = []
        self.operations: list[TracedOperation] = []
        self._size_at: dict[tuple[int, ...], int] = {}
        self._operation_at: dict[tuple[int, ...], int] = {}

    def event(self, events: tuple[int, ...]) -> int:
        kind = events[0] % EVENT_KINDS
        if any(each % EVENT_KINDS != kind for each in events):
            raise DifferentWork
        if kind in (EventKind.FREE, EventKind.MARK):
            if len(set(events)) > 1:
                raise DifferentWork
            return events[0]
        arguments = tuple(each // EVENT_KINDS for each in events)
        merge = self._size if kind == EventKind.ALLOCATE else self._operation
        return merge(arguments) * EVENT_KINDS + kind

    def shape(self, shapes: Sequence[list[int]]) -> list[int]:
        return [self._size(each) for each in _aligned(shapes)]

    def _size(self, indices: tuple[int, ...]) -> int:
        if indices not in self._size_at:
            values = []
            for trace, index in zip(self._traces, indices, strict=True):
                value = trace.expressions[index]
                if not isinstance(value, int):
                    raise DifferentWork  # it already has a symbol
                values.append(value)
            self._size_at[indices] = len(self.expressions)
            self.expressions.append(through(self._batches, values))
        return self._size_at[indices]

    def _operation(self, indices: tuple[int, ...]) -> int:
        if indices not in self._operation_at:
            same = [trace.operations[index] for trace, index in zip(self._traces, indices, strict=True)]
            if any((each.name, each.attributes) != (same[0].name, same[0].attributes) for each in same):
                raise DifferentWork
            made = TracedOperation(
                same[0].name,
                self._tensors([each.inputs for each in same]),
                self._tensors([each.outputs for each in same]),
                same[0].attributes,
            )
            self._operation_at[indices] = len(self.operations)
            self.operations.append(made)
        return self._operation_at[indices]

    def _tensors(self, lists: Sequence[list[Tensor]]) -> list[Tensor]:
        found = []
        for same in _aligned(lists):
            first = same[0]
            if any((each.dtype, each.contiguous) != (first.dtype, first.contiguous) for each in same):
                raise DifferentWork
            found.append(Tensor(first.dtype, self.shape([each.shape for each in same]), first.contiguous))
        return found


def through(batches: Sequence[int], values: Sequence[int]) -> Expression:
    """An expression of the batch: a line, a parabola with whole coefficients, or the nearest line, rounded down."""
    if len(set(values)) == 1:
        return values[0]
    first, second, third = zip(batches, values, strict=True)
    slope, next_slope = _slope(first, second), _slope(second, third)
    bend = (next_slope - slope) / (third[0] - first[0])
    linear = slope - bend * (first[0] + second[0])
    constant = first[1] - linear * first[0] - bend * first[0] ** 2
    if bend < 0 or any(each.denominator > 1 for each in (bend, linear, constant)):
        bend, linear = Fraction(0), _slope(first, third)
        constant = first[1] - linear * first[0]
    below = lcm(linear.denominator, constant.denominator)
    terms: list[Expression] = [["*", int(bend), ["**", BATCH, 2]]] if bend else []
    if linear:
        terms.append(["*", int(linear * below), BATCH])
    if constant:
        terms.append(int(constant * below))
    whole: Expression = ["+", *terms] if len(terms) > 1 else terms[0]
    # A line that is only nearly right can fall below one byte or element.
    return ["max", 1, ["//", whole, below]] if below > 1 or constant < 0 else whole


def _slope(low: tuple[int, int], high: tuple[int, int]) -> Fraction:
    return Fraction(high[1] - low[1], high[0] - low[0])


def _aligned(lists: Sequence[Sequence[Each]]) -> list[tuple[Each, ...]]:
    if any(len(each) != len(lists[0]) for each in lists):
        raise DifferentWork
    return list(zip(*lists, strict=True))
