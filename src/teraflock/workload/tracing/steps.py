"""Which part of a run is one step. No PyTorch here: only what happened, in order.

A run is a list of `Happening`s: forward passes of outermost modules, backward passes, optimizer steps, batches that a
data loader gave. A step is the smallest pattern of them that came twice in a row and in which every optimizer stepped
at least once. So gradient accumulation, several optimizers and closures need no rules of their own. Evaluation (the
trained model without gradients and in `eval()`) is not part of a step wherever it happens.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

ROUNDS_MAX: Final = 6
"""Steps after which a pattern is no longer waited for: the last one is taken as it is."""
UNUSED_OPTIMIZER_STEPS_MAX: Final = 40
"""Steps after which an optimizer that has never stepped counts as unused."""
LOOPS_WITHOUT_OPTIMIZER: Final = 2
"""Backward passes after which a script without any optimizer object counts as one that updates by hand."""

FORWARD, BACKWARD, STEP, LOAD, EVALUATION = "forward", "backward", "step", "load", "evaluation"


class Happening(msgspec.Struct, frozen=True):
    kind: str
    who: int = 0
    """Which module or optimizer."""
    at: int = 0
    """Number of the event of the trace at which it began; of a step, at which it ended."""
    samples: int = 0
    shape: tuple[int, ...] = ()


class Window(msgspec.Struct, frozen=True):
    """The step that was found: the happenings from `first` up to `last`, and their events."""

    first: int
    last: int
    start: int
    end: int


def training_window(run: Sequence[Happening], optimizers: int) -> Window | None:
    """The step that ends with the last happening, or None while it is not sure. Asked after every optimizer step."""
    kept = [index for index, each in enumerate(run) if each.kind in (FORWARD, BACKWARD, STEP)]
    tokens = [(run[index].kind, run[index].who if run[index].kind != BACKWARD else 0) for index in kept]
    steps = [place for place, (kind, _) in enumerate(tokens) if kind == STEP]
    wanted = optimizers if len(steps) < UNUSED_OPTIMIZER_STEPS_MAX else 1
    for begin in reversed([-1, *steps[:-1]]):
        length = len(tokens) - 1 - begin
        pattern = tokens[begin + 1 :]
        if len({who for kind, who in pattern if kind == STEP}) < wanted:
            continue
        before = tokens[max(0, begin + 1 - length) : begin + 1]
        if begin >= 0 and pattern == before:
            return _window(run, kept[begin], kept[-1])
    rounds = _rounds(tokens, wanted)
    if len(rounds) > ROUNDS_MAX:
        return _window(run, kept[rounds[-2]], kept[rounds[-1]])
    return None


def hand_updated_window(run: Sequence[Happening]) -> Window | None:
    """As above for a script that has no optimizer object; asked when a forward pass has just begun."""
    kept = [index for index, each in enumerate(run) if each.kind in (FORWARD, BACKWARD)]
    starts = [
        place
        for place, index in enumerate(kept)
        if run[index].kind == FORWARD and (place == 0 or run[kept[place - 1]].kind == BACKWARD)
    ]
    if len(starts) <= LOOPS_WITHOUT_OPTIMIZER or starts[-1] != len(kept) - 1:
        return None
    first, last = kept[starts[-2]], kept[starts[-1]]
    return Window(first, last - 1, run[first].at, run[last].at)


def inference_window(run: Sequence[Happening], end: int) -> Window | None:
    """One pass of a script that never trains: the second repetition of its forward passes, or all of them."""
    kept = [index for index, each in enumerate(run) if each.kind in (FORWARD, EVALUATION)]
    if not kept:
        return None
    tokens = [(run[index].who, run[index].shape) for index in kept]
    for length in range(1, len(tokens) // 2 + 1):
        rounds = len(tokens) // length
        if all(tokens[place] == tokens[place % length] for place in range(rounds * length)):
            stop = run[kept[2 * length]].at if len(kept) > 2 * length else end
            return Window(kept[length], kept[2 * length - 1], run[kept[length]].at, stop)
    return Window(kept[0], kept[-1], run[kept[0]].at, end)


def samples_of(run: Sequence[Happening], window: Window) -> int:
    """Samples that one step takes in: what the loader gave, or else what the backward passes began with."""
    skip = run[window.first].kind == STEP  # the end of the step before
    part = run[window.first + skip : window.last + 1]
    return _loaded(part) or _passed(part)


def backward_passes_of(run: Sequence[Happening], window: Window) -> int:
    return sum(each.kind == BACKWARD for each in run[window.first + 1 : window.last + 1])


def forward_passes_of(run: Sequence[Happening], window: Window) -> int:
    """Evaluation counts only where nothing is trained."""
    trains = any(each.kind == BACKWARD for each in run)
    kinds = (FORWARD,) if trains else (FORWARD, EVALUATION)
    return sum(each.kind in kinds for each in run[window.first : window.last + 1])


def _loaded(part: Sequence[Happening]) -> int:
    """Only batches that a forward pass follows: others were for something else, or for the next step."""
    total = pending = 0
    for each in part:
        if each.kind == LOAD:
            pending += each.samples
        elif each.kind == EVALUATION:
            pending = 0
        elif each.kind == FORWARD:
            total, pending = total + pending, 0
    return total


def _passed(part: Sequence[Happening]) -> int:
    if not any(each.kind == BACKWARD for each in part):
        return next((each.samples for each in part if each.samples), 0)
    steps: dict[int, list[int]] = {}
    first = since = 0
    for each in part:
        if each.kind == FORWARD:
            first = first or each.samples
        elif each.kind == BACKWARD:
            since, first = since + first, 0
        elif each.kind == STEP:
            steps.setdefault(each.who, []).append(since)
            since = first = 0
    # A discriminator takes two backward passes a step and its generator one: the fewest are a batch. An optimizer that
    # steps right after another has none of its own, and says nothing.
    least = min((each for taken in steps.values() for each in taken if each), default=since)
    return least * max((len(each) for each in steps.values()), default=1)


def _rounds(tokens: Sequence[tuple[str, int]], wanted: int) -> list[int]:
    """Where each round ends in which `wanted` optimizers stepped."""
    ends, seen = [], set()
    for place, (kind, who) in enumerate(tokens):
        if kind == STEP:
            seen.add(who)
            if len(seen) >= wanted:
                ends.append(place)
                seen = set()
    return ends


def _window(run: Sequence[Happening], before: int, last: int) -> Window:
    return Window(before, last, run[before].at, run[last].at)
