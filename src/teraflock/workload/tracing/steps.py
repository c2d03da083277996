"""Finds the part of a run that is one step. Without PyTorch: uses only what happened, in order.

A run is a list of `Happening`s: forward passes of outermost modules, backward passes, optimizer steps, and batches of
a data loader. A step is the shortest pattern that occurred twice in a row and in which every optimizer stepped at
least once. So gradient accumulation, several optimizers and closures need no special rules. Evaluation (the trained
model without gradients and in `eval()`) is never part of a step.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

ROUNDS_MAX: Final = 6
"""After this many steps without a pattern, the last step is used."""
UNUSED_OPTIMIZER_STEPS_MAX: Final = 40
"""After this many steps, an optimizer that never stepped counts as unused."""
LOOPS_WITHOUT_OPTIMIZER: Final = 2
"""After this many backward passes, a script without an optimizer object counts as updating parameters itself."""

FORWARD, BACKWARD, STEP, LOAD, EVALUATION = "forward", "backward", "step", "load", "evaluation"
GRADIENT: Final = "gradient"
"""Gradients of parameters from `torch.autograd.grad` or `torch.func.grad`. See `counted`."""


class Happening(msgspec.Struct, frozen=True):
    kind: str
    who: int = 0
    """The module or optimizer."""
    at: int = 0
    """The number of the trace's event at which it began; for an optimizer step, at which it ended."""
    samples: int = 0
    """Of a backward pass only if the script has no module."""
    shape: tuple[int, ...] = ()
    is_aside: bool = False
    """A forward pass without gradients, or a pass inside an optimizer's step, which repeats what was done."""
    is_answer: bool = False
    """A forward pass of a module after the script read results of the one before: as with actions that an environment
    answers, its samples are new ones."""


class Window(msgspec.Struct, frozen=True):
    """The step that was found: the happenings from `first` up to `last`, and their events."""

    first: int
    last: int
    start: int
    end: int


def counted(run: Sequence[Happening]) -> Sequence[Happening]:
    """Without a call of `backward`, gradients that the script asked for are its backward passes. With one, they are
    part of a loss: of a penalty, or of the inner steps of meta-learning."""
    kinds = {each.kind for each in run}
    if BACKWARD in kinds or GRADIENT not in kinds:
        return run
    return [msgspec.structs.replace(each, kind=BACKWARD) if each.kind == GRADIENT else each for each in run]


def training_window(run: Sequence[Happening], optimizers: int) -> Window | None:
    """The step that ends with the last happening, or None if it is not certain. Called after every optimizer step."""
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
    """The same for a script without an optimizer object. Called at the start of a forward pass, or of a backward pass
    if the script has no module."""
    kept = [index for index, each in enumerate(run) if each.kind in (FORWARD, BACKWARD)]
    bare = all(run[index].kind == BACKWARD for index in kept)
    starts = [
        place
        for place, index in enumerate(kept)
        if bare or (run[index].kind == FORWARD and (place == 0 or run[kept[place - 1]].kind == BACKWARD))
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
    """The samples of one step: what the loader returned, or otherwise what the backward passes began with."""
    skip = run[window.first].kind == STEP  # the end of the previous step
    part = run[window.first + skip : window.last + 1]
    return _loaded(part) or _passed(part)


def backward_passes_of(run: Sequence[Happening], window: Window) -> int:
    return sum(each.kind == BACKWARD for each in run[window.first : window.last + 1])


def forward_passes_of(run: Sequence[Happening], window: Window) -> int:
    """Evaluation counts only if nothing is trained."""
    trains = any(each.kind == BACKWARD for each in run)
    kinds = (FORWARD,) if trains else (FORWARD, EVALUATION)
    return sum(each.kind in kinds for each in run[window.first : window.last + 1])


def _loaded(part: Sequence[Happening]) -> int:
    """Only batches that are followed by a forward pass, or by a backward pass if there is no module. Others were for
    something else, or for the next step."""
    total = pending = 0
    uses = FORWARD if any(each.kind == FORWARD for each in part) else BACKWARD
    for each in part:
        if each.kind == LOAD:
            pending += each.samples
        elif each.kind == EVALUATION:
            pending = 0
        elif each.kind == uses:
            total, pending = total + pending, 0
    return total


def _passed(part: Sequence[Happening]) -> int:
    if not any(each.kind == BACKWARD for each in part):
        return next((each.samples for each in part if each.samples), 0)
    steps: dict[int, list[int]] = {}
    first = since = who = 0
    for each in part:
        if each.kind == FORWARD and not each.is_aside:
            who = who if first else each.who
            first += each.samples if not first or (each.is_answer and each.who == who) else 0
        elif each.kind == BACKWARD:
            first = first or each.samples
            since, first = max(since, first) if each.is_aside else since + first, 0
        elif each.kind == STEP:
            steps.setdefault(each.who, []).append(since)
            since = first = 0
    # A discriminator has two backward passes per step and its generator one: the smaller number is one batch. An
    # optimizer that steps directly after another has no pass of its own and is ignored.
    least = min((each for taken in steps.values() for each in taken if each), default=since)
    return least * max((len(each) for each in steps.values()), default=1)


def _rounds(tokens: Sequence[tuple[str, int]], wanted: int) -> list[int]:
    """The end of each round in which `wanted` optimizers stepped."""
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
