"""The parts of a trace that do not depend on sizes, computed once for all batches."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

from teraflock.estimate.operation import MATMULS
from teraflock.estimate.workspace import has_special_workspace
from teraflock.workload.trace import EVENT_KINDS, EventKind, Mark, Trace

# Plain integers: a loop over a hundred thousand events would spend half its time on enum lookups.
ALLOCATE: Final = int(EventKind.ALLOCATE)
FREE: Final = int(EventKind.FREE)
OPERATE: Final = int(EventKind.OPERATE)
BACKWARD: Final = int(Mark.BACKWARD)
OPTIMIZER: Final = int(Mark.OPTIMIZER)
FORWARD: Final = int(Mark.FORWARD)
FIRST_OPERATION: Final = 1 << 40
TO_BACKWARD: Final = 1 << 50
TO_FORWARD: Final = 1 << 51

Moves = list[int]
"""Events in a form that is fast to replay. A number up to `FIRST_OPERATION` allocates the size with this index. From
there on it is an operation; `TO_BACKWARD` begins a backward pass, and `TO_FORWARD` ends it. A negative number -n frees
the block that was allocated n-th."""


class Outline:
    def __init__(self, trace: Trace) -> None:
        self.sides: set[bool] = set()
        """Where matrix products run, known after `moves`: in the backward pass (true), which has a thread of its own,
        or elsewhere. Each thread has a workspace."""
        self.matmuls = [operation.name.split(".")[0] in MATMULS for operation in trace.operations]
        self.setup, self.step = _parts(trace)
        self.specials = {
            at for at, operation in enumerate(trace.operations) if has_special_workspace(operation)
        }

        self._trace = trace

    @cached_property
    def parameters(self) -> list[tuple[list[int], str]]:
        """Shape and type of every trainable parameter; none if a shape depends on a symbol."""
        known, found = self._trace.expressions, []
        for each in self._trace.parameters:
            shape = [size for at in each.shape if type(size := known[at]) is int]
            if len(shape) < len(each.shape):
                return []
            if each.trainable:
                found.append((shape, each.dtype))
        return found

    @cached_property
    def lean_moves(self) -> tuple[Moves, Moves]:
        """With the operations that have a workspace even when memory is short."""
        return self.moves(self.specials)

    def moves(self, operations: Iterable[int]) -> tuple[Moves, Moves]:
        """Of the setup and of the step, with these operations. Always included is the first matrix product of each
        pass, which allocates a workspace for all."""
        wanted = set(operations)
        setup, births = self._moves_of(self.setup, 0, wanted)
        return setup, self._moves_of(self.step, births, wanted)[0]

    def _moves_of(self, events: Sequence[int], births: int, wanted: set[int]) -> tuple[Moves, int]:
        moves: Moves = []
        seeks_matmul, is_backward = True, False
        for event in events:
            kind, argument = event & 3, event >> 2
            if kind == ALLOCATE:
                births += 1
                moves.append(argument)
            elif kind == FREE:
                moves.append(argument - births - 1)
            elif kind == OPERATE:
                is_first_matmul = seeks_matmul and self.matmuls[argument]
                if is_first_matmul:
                    self.sides.add(is_backward)
                if is_first_matmul or argument in wanted:
                    moves.append(FIRST_OPERATION + argument)
                    seeks_matmul = seeks_matmul and not is_first_matmul
            elif argument in (BACKWARD, FORWARD):
                is_backward = argument == BACKWARD
                moves.append(TO_BACKWARD if is_backward else TO_FORWARD)
                seeks_matmul = True
        return moves, births


def _parts(trace: Trace) -> tuple[list[int], list[int]]:
    """Split the events into those before the first step and the rest."""
    start = Mark.STEP * EVENT_KINDS + EventKind.MARK
    at = trace.events.index(start) if start in trace.events else 0
    return trace.events[:at], trace.events[at:]
