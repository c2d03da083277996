"""Families of models: one recorded trace that serves any widths and any number of layers.

A family is recorded with four layers (`lab/families.py`), or four in each of its stacks: an encoder and a decoder, or
two encoders. It is stored in parts: those that occur once, and loops with a part per layer, for setup, forward and
backward. `expanded` writes the trace of a model with any number of layers: the first and the last layer as recorded,
and the second one for all layers in between. A freed storage is identified by the part that allocated it, counted from
the part that frees it, so it is found at any depth.
"""

import zlib
from collections.abc import Sequence
from typing import Final

import msgspec

from teraflock.workload.expression import Expression, evaluate_all
from teraflock.workload.trace import EVENT_KINDS, EventKind, Mark, Parameter, Tensor, Trace, TracedOperation

RECORDED_LAYERS: Final = 4
LAYERS_MIN: Final = 2
ONCE: Final = -1
ALL: Final = 1000
"""Instead of a layer: all of them."""
FIRST: Final = 1001
LAST: Final = 1002
"""Instead of a layer: a layer at one end of a stack frees a storage of the other end."""
STACK: Final = 16
"""The number of a layer among all stacks is `STACK * stack + layer`."""
ALLOCATE: Final = int(EventKind.ALLOCATE)
FREE: Final = int(EventKind.FREE)

Birth = tuple[int, int, int]
"""Loop, layer and position within the part. For a part that occurs once: `ONCE`, its number and the position."""
TURNS: Final = (0, 7, 24)


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """Where a freed storage was allocated."""

    loop: int
    layer: int
    """Counted from the layer that frees it; from a part that occurs once: 0 is the first layer, -1 the last, -2."""
    place: int


class FamilyPart(msgspec.Struct, frozen=True, array_like=True):
    loop: int
    layer: int
    events: list[int]
    """As in a trace, but a free has the number of a reference."""
    references: list[Reference]
    kinds: str
    stack: int = 0


class Family(msgspec.Struct, frozen=True, kw_only=True):
    trace: Trace
    """Without events. Its sizes are also expressions of the widths."""
    parts: list[FamilyPart]
    parameter_layers: list[int]
    """Of each parameter; -1 if it belongs to no layer. In further stacks `STACK * stack + layer`."""
    views_once: int = 0
    """Of the trace's views, those outside of layers."""


def write_family(family: Family) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(family), 9)


def read_family(data: bytes) -> Family:
    return msgspec.msgpack.decode(zlib.decompress(data), type=Family)


def expanded(family: Family, layers: Sequence[int], symbols: dict[str, int], *, name: str) -> Trace:
    """The trace of a model of this family, with at least `LAYERS_MIN` layers in each stack."""
    assert min(layers) >= LAYERS_MIN
    writer = _Writer(family, layers)
    for number, part in enumerate(family.parts):
        if part.loop == ONCE:
            writer.write(part, (ONCE, number), 0)
        elif part.layer in (0, RECORDED_LAYERS - 1) and (part.loop, 0) not in writer.bases:
            rising, depth = part.layer == 0, layers[part.stack]
            for layer in range(depth) if rising else reversed(range(depth)):
                writer.write(writer.template(part.loop, layer, depth), (part.loop, layer), layer)
    return msgspec.structs.replace(
        family.trace,
        name=name,
        symbols={**family.trace.symbols, **symbols},
        events=writer.events,
        kinds="".join(writer.kinds),
        parameters=_parameters(family, layers),
        views=family.views_once
        + (family.trace.views - family.views_once) * sum(layers) // (RECORDED_LAYERS * len(layers)),
    )


class _Writer:
    def __init__(self, family: Family, layers: Sequence[int]) -> None:
        self.layers = layers
        self.templates = {(part.loop, part.layer): part for part in family.parts if part.loop != ONCE}
        self.stacks = {part.loop: part.stack for part in family.parts}
        self.bases: dict[tuple[int, int], int] = {}
        self.events: list[int] = []
        self.kinds: list[str] = []
        self.born = 0

    def template(self, loop: int, layer: int, depth: int) -> FamilyPart:
        """The recorded layer for this one. A layer in between refers to its neighbours: the first and the last may
        number their storages differently."""
        if layer in (0, depth - 1):
            return self.templates[loop, RECORDED_LAYERS - 1 if layer else 0]
        after_first, before_last = layer == 1, layer == depth - 2
        key = loop, RECORDED_LAYERS + 2 * after_first + before_last
        if key not in self.templates:
            second, third = self.templates[loop, 1], self.templates[loop, 2]
            pairs = zip(second.references, third.references, strict=True)
            self.templates[key] = msgspec.structs.replace(
                second,
                references=[
                    right
                    if (left.layer < 0 and not after_first) or (left.layer > 0 and before_last)
                    else left
                    for left, right in pairs
                ],
            )
        return self.templates[key]

    def write(self, part: FamilyPart, key: tuple[int, int], layer: int) -> None:
        self.bases[key] = self.born
        events, born = self.events, self.born
        shared: list[Reference] = []
        for event in part.events:
            kind = event % EVENT_KINDS
            if kind == FREE:
                found = part.references[event // EVENT_KINDS]
                if found.layer == ALL:
                    shared.append(found)
                    continue
                event = (born - self._number(found, part, layer)) * EVENT_KINDS + FREE
            if shared:
                events += [(born - number) * EVENT_KINDS + FREE for number in self._of_all(shared)]
                shared = []
            events.append(event)
            born += kind == ALLOCATE
        events += [(born - number) * EVENT_KINDS + FREE for number in self._of_all(shared)]
        self.born = born
        self.kinds.append(part.kinds)

    def _of_all(self, found: list[Reference]) -> list[int]:
        """Storages that are freed in every layer: layer by layer, as they were made."""
        depths = [self.layers[self.stacks[each.loop]] for each in found]
        return [
            self.bases[each.loop, layer] + each.place
            for layer in range(max(depths, default=0))
            for each, depth in zip(found, depths, strict=True)
            if layer < depth
        ]

    def _number(self, found: Reference, part: FamilyPart, layer: int) -> int:
        if found.loop == ONCE:
            return self.bases[ONCE, found.layer] + found.place
        stack = self.stacks[found.loop]
        depth = self.layers[stack]
        if found.layer in (FIRST, LAST):
            target = 0 if found.layer == FIRST else depth - 1
        elif part.loop != ONCE and part.stack == stack:
            target = layer + found.layer
        else:
            target = found.layer % depth
        return self.bases[found.loop, target] + found.place


def _parameters(family: Family, layers: Sequence[int]) -> list[Parameter]:
    """Those of the second layer are used for all layers between the first and the last."""
    found: list[Parameter] = []
    pairs = list(zip(family.trace.parameters, family.parameter_layers, strict=True))
    done: set[int] = set()
    for parameter, number in pairs:
        stack, layer = divmod(number, STACK) if number >= 0 else (0, ONCE)
        if layer in (1, 2):
            if stack not in done:
                middle = [each for each, other in pairs if other == STACK * stack + 1]
                found += middle * (layers[stack] - 2)
                done.add(stack)
            continue
        found.append(parameter)
    return found


# Splitting a recorded trace into parts.


def cut(
    trace: Trace,
    layer_of_storage: dict[int, int],
    parameter_layers: list[int],
    marks: dict[int, tuple[int, int]],
    primes: dict[str, tuple[int, int]],
) -> Family:
    """`marks` maps an event to the loop and layer that begin with it; loop `ONCE` ends one. Layers are numbered among
    all stacks."""
    trace = _merged(trace)
    trace = msgspec.structs.replace(trace, expressions=[symbolic(each, primes) for each in trace.expressions])
    start = Mark.STEP * EVENT_KINDS + EventKind.MARK
    at = trace.events.index(start)
    births = sum(event % EVENT_KINDS == ALLOCATE for event in trace.events[:at])
    cutter = _Cutter(trace)
    alive = _alive(trace.events[:at])
    sizes = [event // EVENT_KINDS for event in trace.events if event % EVENT_KINDS == ALLOCATE]
    before = ONCE
    run = 100  # loops of the setup: another run begins when the first layer occurs again
    for number in alive:
        layer = layer_of_storage.get(number, ONCE)
        if layer != before:
            run += layer % STACK == 0
            cutter.begin(run if layer != ONCE else ONCE, layer)
        before = layer
        cutter.allocate(number, sizes[number])
    cutter.begin(ONCE, ONCE)
    cutter.count = births
    for event in trace.events[at:]:
        if event in marks:
            cutter.begin(*marks[event])
        else:
            cutter.add(event)
    family = Family(
        trace=msgspec.structs.replace(trace, events=[], kinds=""),
        parts=cutter.parts(),
        parameter_layers=parameter_layers,
    )
    _check(family)
    return family


def _merged(trace: Trace) -> Trace:
    """Equal sizes may be written in several ways. One form replaces all that are equal for every tested value."""
    names = sorted({*trace.symbols, *_names(trace.expressions)})
    tried = [
        evaluate_all(trace.expressions, {n: 16 * (turn + 3 * i + 5) for i, n in enumerate(names)})
        for turn in TURNS
    ]
    plainest: dict[tuple[int, ...], int] = {}
    values = list(zip(*tried, strict=True))
    for at in sorted(range(len(values)), key=lambda each: len(str(trace.expressions[each]))):
        plainest.setdefault(values[at], at)
    same = [plainest[each] for each in values]
    operations: dict[bytes, int] = {}
    kept: list[TracedOperation] = []
    place: list[int] = []
    for each in trace.operations:
        one = msgspec.structs.replace(
            each, inputs=_resized(each.inputs, same), outputs=_resized(each.outputs, same)
        )
        key = msgspec.msgpack.encode(one)
        if key not in operations:
            operations[key] = len(kept)
            kept.append(one)
        place.append(operations[key])
    moved = {ALLOCATE: same, int(EventKind.OPERATE): place}
    return msgspec.structs.replace(
        trace,
        operations=kept,
        events=[
            moved[event % EVENT_KINDS][event // EVENT_KINDS] * EVENT_KINDS + event % EVENT_KINDS
            if event % EVENT_KINDS in moved
            else event
            for event in trace.events
        ],
    )


def _names(value: object) -> set[str]:
    if isinstance(value, str):
        return {value}
    if not isinstance(value, list):
        return set()
    inner = value[1:] if value and value[0] in ("*", "+", "//", "%", "**", "max", "min") else value
    return {name for each in inner for name in _names(each)}


def _resized(tensors: list[Tensor], same: list[int]) -> list[Tensor]:
    return [msgspec.structs.replace(each, shape=[same[index] for index in each.shape]) for each in tensors]


def _alive(events: list[int]) -> list[int]:
    born, dead = 0, set()
    for event in events:
        kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
        if kind == ALLOCATE:
            born += 1
        elif kind == FREE:
            dead.add(born - argument)
    return [number for number in range(born) if number not in dead]


class _Cutter:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.open: list[tuple[int, int, list[int], list[Birth], list[str]]] = []
        self.stacks: list[int] = []
        self.homes: dict[int, Birth] = {}
        self.count = 0

    def begin(self, loop: int, layer: int) -> None:
        """`layer` is numbered among all stacks."""
        self.stacks.append(layer // STACK if loop != ONCE else 0)
        self.open.append((loop, layer % STACK if loop != ONCE else len(self.open), [], [], []))

    def allocate(self, number: int, size: int) -> None:
        if not self.open:
            self.begin(ONCE, ONCE)
        loop, layer, events, _, kinds = self.open[-1]
        self.homes[number] = (loop, layer, len(kinds))
        kinds.append(self.trace.kinds[number])
        events.append(size * EVENT_KINDS + ALLOCATE)

    def add(self, event: int) -> None:
        kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
        if kind == ALLOCATE:
            self.allocate(self.count, argument)
            self.count += 1
        elif kind == FREE:
            home = self.homes.get(self.count - argument)
            if home is not None:  # otherwise it was freed before the step
                _, _, events, references, _ = self.open[-1]
                events.append(len(references) * EVENT_KINDS + FREE)
                references.append(home)
        else:
            self.open[-1][2].append(event)

    def parts(self) -> list[FamilyPart]:
        made = []
        stack_of = {each[0]: stack for each, stack in zip(self.open, self.stacks, strict=True)}
        for (loop, layer, events, homes, kinds), stack in zip(self.open, self.stacks, strict=True):
            whole = _of_all_layers(homes) if loop == ONCE else set()
            kept: list[int] = []
            references: list[Reference] = []
            for event in events:
                if event % EVENT_KINDS != FREE:
                    kept.append(event)
                    continue
                home = homes[event // EVENT_KINDS]
                if (home[0], home[2]) in whole:
                    if home[1]:
                        continue  # stored once for all layers
                    found = Reference(home[0], ALL, home[2])
                else:
                    inside = loop != ONCE and stack_of[home[0]] == stack
                    found = _relative(home, layer, inside=inside)
                kept.append(len(references) * EVENT_KINDS + FREE)
                references.append(found)
            made.append(FamilyPart(loop, layer, kept, references, "".join(kinds), stack))
        return made


def _of_all_layers(homes: list[Birth]) -> set[tuple[int, int]]:
    """Loop and position of what one part frees in every layer: autocast's copies of the weights."""
    layers: dict[tuple[int, int], set[int]] = {}
    for loop, layer, place in homes:
        if loop != ONCE:
            layers.setdefault((loop, place), set()).add(layer)
    return {key for key, found in layers.items() if len(found) == RECORDED_LAYERS}


def _relative(home: Birth, layer: int, *, inside: bool) -> Reference:
    """`inside`: relative to a layer of the same stack."""
    if home[0] == ONCE:
        return Reference(*home)
    if inside:
        apart = home[1] - layer
        ends = {1 - RECORDED_LAYERS: FIRST, RECORDED_LAYERS - 1: LAST}
        return Reference(home[0], ends.get(apart, apart), home[2])
    if home[1] == 1:
        raise ValueError("a storage of a middle layer is freed outside its stack")
    return Reference(home[0], home[1] - RECORDED_LAYERS if home[1] else 0, home[2])


def _check(family: Family) -> None:
    """The second and the third layer do the same. Layers next to them may number storages differently."""
    by = {(part.loop, part.layer): part for part in family.parts if part.loop != ONCE}
    for (loop, layer), part in by.items():
        if layer == 1:
            other = by[loop, 2]
            apart = [(each.loop, each.layer) for each in part.references]
            if (part.events, part.kinds) != (other.events, other.kinds) or apart != [
                (each.loop, each.layer) for each in other.references
            ]:
                raise ValueError(f"the second and the third layer differ in loop {loop}")


def layers_min(family: Family) -> int:
    """If the layers before the last one refer to other storages than the rest, one layer must be in between."""
    by = {(part.loop, part.layer): part.references for part in family.parts if part.loop != ONCE}
    even = all(found == by[loop, 2] for (loop, layer), found in by.items() if layer == 1)
    return LAYERS_MIN if even else LAYERS_MIN + 1


def symbolic(value: Expression, primes: dict[str, tuple[int, int]]) -> Expression:
    """A recorded size as an expression of widths. Each width has a prime factor that no other number has."""
    if isinstance(value, list):
        return [value[0], *[symbolic(each, primes) for each in value[1:]]]
    if not isinstance(value, int) or value <= 0:
        return value
    rest, below = value, 1
    names: list[str] = []
    for name, (prime, divisor) in primes.items():
        while rest % prime == 0:
            rest //= prime
            below *= divisor
            names.append(name)
    if not names:
        return value
    while rest % 2 == 0 and below % 2 == 0:
        rest, below = rest // 2, below // 2
    product: Expression = ["*", rest, *names] if rest != 1 or len(names) > 1 else names[0]
    return product if below == 1 else ["//", product, below]
