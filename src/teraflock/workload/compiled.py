"""A step under `torch.compile`: rewrites a trace to what Inductor's kernels allocate and move.

Matrix products, convolutions and attention stay library calls. The operations between two of them form a run. In a run,
operations over the same number of elements become one kernel. It reads what the run did not make itself and writes what
outlives the run; everything else stays in registers. Three more things change memory: equal casts are made once, the
backward pass recomputes cheap results instead of keeping them, and inference keeps no casts of weights. The optimizer
is not compiled.

A trace has no data flow, so this module reads it from allocations: an operation's outputs are allocated just before it,
and inputs that it is the last to use are freed just after it.
"""

from collections import Counter
from math import prod
from typing import Final

import msgspec

from teraflock.workload.expression import evaluate_all
from teraflock.workload.fusing import Key, Light, Reads, bytes_of, is_library_call
from teraflock.workload.trace import EVENT_KINDS, FUSED, EventKind, Mark, Tensor, Trace, TracedOperation

CAST: Final = "_to_copy"
ALLOCATE, FREE, OPERATE = int(EventKind.ALLOCATE), int(EventKind.FREE), int(EventKind.OPERATE)
SETUP, FORWARD, BACKWARD, OPTIMIZER = range(4)
PHASES: Final = {int(Mark.BACKWARD): BACKWARD, int(Mark.OPTIMIZER): OPTIMIZER}
BATCH: Final = 61
"""The batch at which sizes are compared. A prime, so that an activation seldom has as many elements as a weight."""


def compiled(trace: Trace) -> Trace:
    writer = _Writer(trace)
    for event in trace.events:
        writer.add(event)
    writer.flush()
    return msgspec.structs.replace(
        trace, events=writer.events, kinds="".join(writer.kinds), operations=writer.operations, views=0
    )


class _Writer:
    """Storages have their numbers in the old trace, unless a name says otherwise."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        symbols = {**trace.symbols, "batch": BATCH} if "batch" in trace.symbols else trace.symbols
        self.sizes = evaluate_all(trace.expressions, symbols)
        self.events: list[int] = []
        self.kinds: list[str] = []
        self.operations = list(trace.operations)
        self.phase = SETUP
        freed = _freed(trace)
        self._kept_for_backward = freed[BACKWARD]
        self._passing = freed[SETUP]
        """What earlier steps freed: they ran compiled too, so nothing in them is larger than in the recorded one."""
        self._elements = [_elements(each, self.sizes) for each in trace.operations]
        self._new_numbers: dict[int, int] = {}
        """Of storages that are allocated and not freed."""
        self._size_of: list[int] = []
        """Index of the size of each storage."""
        self._pending: list[int] = []
        self._run: list[Light] = []
        self._casts: dict[int, tuple[int, Key]] = {}
        """Operation → the storage of its result, and the tensor that it casts."""
        self._until_used: dict[int, int] = {}
        """Storage → its bytes, for results that a later run uses and the backward pass recomputes."""
        self._made: dict[bytes, int] = {}

    def add(self, event: int) -> None:
        kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
        if kind == ALLOCATE:
            if len(self._size_of) not in self._passing:
                self._pending.append(len(self._size_of))
            self._size_of.append(argument)
            if self.phase == SETUP:
                self._allocate_pending()
        elif kind == FREE:
            self._end(len(self._size_of) - argument)
        elif kind == OPERATE:
            self._operate(argument)
        else:
            self.flush()
            self.phase = PHASES.get(argument, FORWARD)
            self.events.append(event)

    def _end(self, number: int) -> None:
        if self._run:
            self._run[-1].last_uses.append(number)
        else:
            self._free(number)

    def _operate(self, index: int) -> None:
        operation = self.trace.operations[index]
        if self.phase not in (SETUP, OPTIMIZER) and not is_library_call(operation.name):
            self._run.append(Light(operation, index, self._elements[index], self._pending, []))
            self._pending = []
            return
        self.flush(operation)
        self._allocate_pending()
        self.events.append(index * EVENT_KINDS + OPERATE)
        self._forget_casts(operation)
        if not self.trace.has_backward:
            for number in [each for each in self._new_numbers if self.trace.kinds[each] == "c"]:
                self._free(number)

    def flush(self, before: TracedOperation | None = None) -> None:
        """Write the run as kernels. The library call `before` comes after it."""
        run, self._run = self._run, []
        if not run:
            self._allocate_pending()
            return
        made = {number for each in run for number in each.outputs}
        freed = [number for each in run for number in each.last_uses]
        kept = self._kept(run, made - set(freed), before)
        freed = [number for number in freed if number not in made] + self._used_now(run)
        # A kernel writes to the memory of an input of the same size that nobody needs after it.
        free = Counter(self.bytes(number) for number in kept)
        for number in freed:
            free[self.bytes(number)] -= 1
            if free[self.bytes(number)] >= 0:
                self._free(number)
        for number in sorted(kept):
            self._allocate(number)
        groups: dict[int, list[Light]] = {}
        for each in run:
            groups.setdefault(each.elements, []).append(each)
        for group in groups.values():
            self._fuse(group, kept, made)
        for number in freed:
            self._free(number)
        pending, self._pending = self._pending, []
        for number in pending:
            self._allocate(number)

    def _fuse(self, group: list[Light], kept: set[int], made: set[int]) -> None:
        written = [Tensor("u", [self._size_of[n]]) for each in group for n in each.outputs if n in kept]
        if not written and all(each.outputs for each in group):
            return  # nothing that anyone reads
        reads = Reads(self.bytes, self.key, made)
        for each in group:
            reads.add(each)
        operation = TracedOperation(FUSED, reads.tensors, written)
        key = msgspec.msgpack.encode(operation)
        if key not in self._made:
            self._made[key] = len(self.operations)
            self.operations.append(operation)
        self.events.append(self._made[key] * EVENT_KINDS + OPERATE)

    def _kept(self, run: list[Light], alive: set[int], before: TracedOperation | None) -> set[int]:
        """The results of a run that are in memory after it."""
        alive -= self._repeated_casts(run)
        results = [(each, number) for each in run for number in each.outputs if number in alive]
        fed = {bytes_of(self.key(each)) for each in before.inputs} if before else set()
        final, needed = self._final(results, fed), self._needed(run)
        kept = set()
        for each, number in results:
            stored = number in needed or self._is_stored(each, number)
            if stored or number in final:
                kept.add(number)
            if not stored and number in final and before and self.bytes(number) not in fed:
                self._until_used[number] = self.bytes(number)
        return kept

    def _final(self, results: list[tuple[Light, int]], fed: set[int]) -> set[int]:
        """The last large result of each kernel, if possible one that the next library call reads."""
        last: dict[int, int] = {}
        for each, number in results:
            before = last.get(each.elements)
            worse = before is not None and self.bytes(before) in fed and self.bytes(number) not in fed
            if not worse and not self._is_small(each, number):
                last[each.elements] = number
        return set(last.values())

    def _is_stored(self, each: Light, number: int) -> bool:
        """Whether the backward pass reads the result itself, or needs no result of this run."""
        if self.phase != FORWARD or number not in self._kept_for_backward or self.trace.kinds[number] != "a":
            return True
        if self._is_small(each, number):
            return True
        if each.name == "native_dropout":
            return self.bytes(number) <= each.elements  # the mask: random numbers are not drawn again
        return each.name == "add" and self._adds_whole(each)

    def _needed(self, run: list[Light]) -> set[int]:
        """Results that are changed in place by a residual connection, or that a pooling window reads several times."""
        found: set[int] = set()
        latest: dict[int, int] = {}
        for each in run:
            if "pool" in each.name or (each.name == "add_" and self._adds_whole(each)):
                found.add(latest.get(bytes_of(self.key(each.operation.inputs[0])), -1))
            latest |= {self.bytes(number): number for number in each.outputs}
        return found

    def _adds_whole(self, each: Light) -> bool:
        """Whether it adds two tensors of the same size: a residual connection."""
        return sum(self.key(tensor)[1] == each.elements for tensor in each.operation.inputs) > 1

    def _is_small(self, each: Light, number: int) -> bool:
        """Whether it is one number per row or channel, which costs little to keep."""
        return self.bytes(number) * 8 <= each.elements

    def _repeated_casts(self, run: list[Light]) -> set[int]:
        found = set()
        for each in run:
            if each.name != CAST or not each.outputs or self.trace.kinds[each.outputs[0]] == "c":
                self._forget_casts(each.operation)
            elif each.index in self._casts and self._casts[each.index][0] in self._new_numbers:
                found.add(each.outputs[0])
            else:
                self._casts[each.index] = each.outputs[0], self.key(each.operation.inputs[0])
        return found

    def _forget_casts(self, operation: TracedOperation) -> None:
        """Forget casts of tensors that look like a result of this operation."""
        keys = {self.key(each) for each in operation.outputs}
        for index in [index for index, (_, source) in self._casts.items() if source in keys]:
            del self._casts[index]

    def _used_now(self, run: list[Light]) -> list[int]:
        """Storages that nobody needs after this run."""
        used: list[int] = []
        for each in run:
            read = {bytes_of(self.key(tensor)) for tensor in each.operation.inputs}
            for number in [number for number, size in self._until_used.items() if size in read]:
                del self._until_used[number]
                if not each.name.endswith("_"):  # otherwise it holds the result now
                    used.append(number)
        return used

    def _allocate_pending(self) -> None:
        pending, self._pending = self._pending, []
        for number in pending:
            self._allocate(number)

    def _allocate(self, number: int) -> None:
        self._new_numbers[number] = len(self.kinds)
        self.kinds.append(self.trace.kinds[number])
        self.events.append(self._size_of[number] * EVENT_KINDS + ALLOCATE)

    def _free(self, number: int) -> None:
        new = self._new_numbers.pop(number, None)
        if new is not None:
            self.events.append((len(self.kinds) - new) * EVENT_KINDS + FREE)

    def bytes(self, number: int) -> int:
        return self.sizes[self._size_of[number]]

    def key(self, tensor: Tensor) -> Key:
        return tensor.dtype, prod(self.sizes[at] for at in tensor.shape)


def _elements(operation: TracedOperation, sizes: list[int]) -> int:
    """Of the largest tensor."""
    tensors = (*operation.inputs, *operation.outputs)
    return max((prod(sizes[at] for at in each.shape) for each in tensors), default=1)


def _freed(trace: Trace) -> dict[int, set[int]]:
    """The storages that each phase frees."""
    found: dict[int, set[int]] = {each: set() for each in (SETUP, FORWARD, BACKWARD, OPTIMIZER)}
    born, phase = 0, SETUP
    for event in trace.events:
        kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
        if kind == ALLOCATE:
            born += 1
        elif kind == FREE:
            found[phase].add(born - argument)
        elif kind != OPERATE:
            phase = PHASES.get(argument, FORWARD)
    return found
