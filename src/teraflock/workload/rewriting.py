"""Copies a trace event by event, with storages and operations added."""

import msgspec

from teraflock.workload.expression import Expression
from teraflock.workload.trace import EVENT_KINDS, EventKind, Tensor, Trace, TracedOperation

ALLOCATE, FREE, OPERATE = int(EventKind.ALLOCATE), int(EventKind.FREE), int(EventKind.OPERATE)


class Rewriter:
    """Subclasses override how the events of the old trace are written. New storages are freed by number, or with a
    storage of the old trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.events: list[int] = []
        self.kinds: list[str] = []
        self.operations = list(trace.operations)
        self.expressions = list(trace.expressions)
        self.numbers: list[int] = []
        """Storage of the old trace → its number in the new one."""
        self.freed_with: dict[int, list[int]] = {}
        """Storage of the old trace → new storages that are freed with it."""
        self._indices: dict[bytes, int] = {}

    def rewritten(self) -> Trace:
        for event in self.trace.events:
            kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
            if kind == ALLOCATE:
                self.begin(argument, self.trace.kinds[len(self.numbers)])
            elif kind == FREE:
                self.end(len(self.numbers) - argument)
            elif kind == OPERATE:
                self.operate(argument)
            else:
                self.mark(argument)
                self.events.append(event)
        return msgspec.structs.replace(
            self.trace,
            events=self.events,
            kinds="".join(self.kinds),
            operations=self.operations,
            expressions=self.expressions,
        )

    def begin(self, size: int, letter: str) -> None:
        """Write the allocation of a storage of the old trace."""
        self.numbers.append(self.allocate(size, letter))

    def end(self, old: int) -> None:
        """Write the release of a storage of the old trace, by its number there."""
        self.free(self.numbers[old], *self.freed_with.pop(old, ()))

    def operate(self, index: int) -> None:
        """Write one operation of the old trace. Its outputs are already allocated."""
        self.events.append(index * EVENT_KINDS + OPERATE)

    def mark(self, mark: int) -> None:
        """Called before a mark is written."""

    def new_operation(self, name: str, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        made = TracedOperation(name, inputs, outputs)
        found = self._indices.setdefault(msgspec.msgpack.encode(made), len(self.operations))
        if found == len(self.operations):
            self.operations.append(made)
        self.events.append(found * EVENT_KINDS + OPERATE)

    def size(self, tensor: Tensor, width: int) -> int:
        """The index of the tensor's size with so many bytes for each number."""
        return self.expression(["*", width, *(self.expressions[at] for at in tensor.shape)])

    def expression(self, made: Expression) -> int:
        found = self._indices.setdefault(msgspec.msgpack.encode(made), len(self.expressions))
        if found == len(self.expressions):
            self.expressions.append(made)
        return found

    def allocate(self, size: int, letter: str) -> int:
        self.events.append(size * EVENT_KINDS + ALLOCATE)
        self.kinds.append(letter)
        return len(self.kinds) - 1

    def free(self, *numbers: int) -> None:
        for number in numbers:
            self.events.append((len(self.kinds) - number) * EVENT_KINDS + FREE)
