"""Gradient accumulation: the trace of a pass that adds to existing gradients.

Between passes all gradients stay in memory. The new gradients of a backward pass are added to them and freed at once.
"""

from teraflock.workload.rewriting import ALLOCATE, Rewriter
from teraflock.workload.trace import EVENT_KINDS, Mark, Tensor, Trace

BYTES = "u"


def accumulated(trace: Trace) -> Trace:
    """The trace with gradients allocated before the step, and each new gradient added to its own and freed."""
    return _Accumulated(trace).rewritten()


class _Accumulated(Rewriter):
    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._added: set[int] = set()
        """Storages of the trace that are freed at once."""

    def mark(self, mark: int) -> None:
        if mark == Mark.STEP:
            sizes = [event // EVENT_KINDS for event in self.trace.events if event % EVENT_KINDS == ALLOCATE]
            for size, letter in zip(sizes, self.trace.kinds, strict=True):
                if letter == "g":
                    self.allocate(size, letter)

    def begin(self, size: int, letter: str) -> None:
        super().begin(size, letter)
        if letter == "g":
            both = [Tensor(BYTES, [size]), Tensor(BYTES, [size])]
            self.new_operation("add_", both, both[:1])
            self._added.add(len(self.numbers) - 1)
            self.free(self.numbers[-1])

    def end(self, old: int) -> None:
        if old not in self._added:
            super().end(old)
