"""Gradient accumulation: the trace of a pass that adds to existing gradients.

Between passes all gradients stay in memory. The new gradients of a backward pass are added to them and freed at once.
"""

import msgspec

from teraflock.workload.trace import EVENT_KINDS, EventKind, Mark, Tensor, Trace, TracedOperation

ALLOCATE, FREE, OPERATE = int(EventKind.ALLOCATE), int(EventKind.FREE), int(EventKind.OPERATE)
STEP = Mark.STEP * EVENT_KINDS + int(EventKind.MARK)
BYTES = "u"


def accumulated(trace: Trace) -> Trace:
    """The trace with gradients allocated before the step, and each new gradient added to its own and freed."""
    writer = _Writer(trace)
    for event in trace.events:
        writer.add(event)
    return msgspec.structs.replace(
        trace, events=writer.events, kinds="".join(writer.kinds), operations=writer.operations
    )


class _Writer:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.events: list[int] = []
        self.kinds: list[str] = []
        self.operations = list(trace.operations)
        self._adds: dict[int, int] = {}
        self._numbers: list[int | None] = []
        """For each storage of the trace: its number in the new trace; `None` once it is freed."""

    def add(self, event: int) -> None:
        kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
        if event == STEP:
            for size in self._gradient_sizes():
                self._birth(size, "g")
            self.events.append(event)
        elif kind == ALLOCATE:
            self._allocate(argument)
        elif kind == FREE:
            number = self._numbers[len(self._numbers) - argument]
            if number is not None:
                self._free(number)
        else:
            self.events.append(event)

    def _gradient_sizes(self) -> list[int]:
        births = [event // EVENT_KINDS for event in self.trace.events if event % EVENT_KINDS == ALLOCATE]
        return [size for size, letter in zip(births, self.trace.kinds, strict=True) if letter == "g"]

    def _allocate(self, size: int) -> None:
        letter = self.trace.kinds[len(self._numbers)]
        number = self._birth(size, letter)
        self._numbers.append(None if letter == "g" else number)
        if letter == "g":
            self.events.append(self._added(size) * EVENT_KINDS + OPERATE)
            self._free(number)

    def _birth(self, size: int, letter: str) -> int:
        self.events.append(size * EVENT_KINDS + ALLOCATE)
        self.kinds.append(letter)
        return len(self.kinds) - 1

    def _free(self, number: int) -> None:
        self.events.append((len(self.kinds) - number) * EVENT_KINDS + FREE)

    def _added(self, size: int) -> int:
        """The operation that adds a tensor of this size to another."""
        if size not in self._adds:
            both = [Tensor(BYTES, [size]), Tensor(BYTES, [size])]
            self._adds[size] = len(self.operations)
            self.operations.append(TracedOperation("add_", both, both[:1]))
        return self._adds[size]
