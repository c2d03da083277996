"""The time of a step as an interval: the operations of the GPU and of the host run in parallel.

A short step waits for the host, which issues every operation in Python and C++ (`estimate/host.py`). The costs of the
host were fitted on the machines of the measured H200s. A slower host takes longer than estimated.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import exp, hypot, prod
from typing import TYPE_CHECKING, Final

import msgspec

from teraflock.estimate.bounds import CardModel
from teraflock.estimate.host import (
    CELL,
    CELL_SECONDS,
    CORRECTION,
    CORRECTION_SECONDS,
    LIST,
    LIST_SECONDS,
    UNPACK,
    Timelines,
    divided,
    issued,
    seconds_of,
)
from teraflock.estimate.memory import Scene
from teraflock.estimate.operation import Work, work
from teraflock.estimate.quantized import UNPACK_SECONDS, wait_seconds
from teraflock.estimate.scaled import Scaled
from teraflock.estimate.speed import (
    PEAKS_H200,
    Measured,
    Peaks,
    mean_nearness,
    seconds_h200,
    timed_h200,
)

if TYPE_CHECKING:
    from teraflock.estimate.compiled import CompiledModel

SHARED: Final = "shared"
OWN: Final = "own"
HOSTS: Final = (SHARED, OWN)
"""Whether the host's CPU cores are shared with others, as on most rented machines, or used by this workload alone."""
Host = str | float
"""One of `HOSTS`, or a known pace: how many times as long as the measured host this one takes to issue a step."""


class Seconds(msgspec.Struct, frozen=True):
    p10: float
    p50: float
    p90: float


class StepWork:
    """The operations of one step with their times on the H200, computed once and then scaled to any card."""

    def __init__(
        self,
        scene: Scene,
        optimizer: str,
        known: Measured,
        precision: str,
        *,
        host: Host = SHARED,
        model: str = "",
        generator: bool = False,
        context: bool = False,
        card_model: CardModel | None = None,
        before: "tuple[StepWork, int] | None" = None,
        compiled: "CompiledModel | None" = None,
    ) -> None:
        """`model` is a name in the zoo. `card_model` replaces the fitted one to evaluate a fit. Set `context` for steps
        that were measured under `with torch.device(…)`. `before` has the passes that only accumulate gradients, and how
        many of them a step has. `compiled` is given for a trace that `workload/compiled.py` rewrote."""
        self._before = before
        trains = scene.trace.has_backward and not scene.trace.has_optimizer
        lists = optimizer_works(optimizer, scene) if trains else []
        step = issued(
            scene, optimizer, len(lists), generator=generator, context=context, compiled=bool(compiled)
        )
        counts = Counter(index for index, _ in step.order)
        time = compiled.timed if compiled else timed_h200
        timed = {
            index: time(each, known, precision)
            for index, each in enumerate(scene.works)
            if index in counts and each.kernel
        }
        times = {index: seconds for index, (seconds, _) in timed.items()}
        nearness = mean_nearness((counts[index] * seconds, near) for index, (seconds, near) in timed.items())
        ends = [seconds_h200(each, known, precision) for each in lists]
        items = [(scene.works[index], counts[index], seconds) for index, seconds in times.items()]
        items += [(each, 1, seconds) for each, seconds in zip(lists, ends, strict=True)]
        self._items = items
        self.scaled = Scaled(items, tf32=precision == "tf32", model=card_model)
        self._latest: tuple[Peaks | None, float] = (None, 0.0)
        by_kind = {
            **known.host,
            UNPACK: UNPACK_SECONDS,
            LIST: LIST_SECONDS,
            CORRECTION: CORRECTION_SECONDS,
            CELL: CELL_SECONDS,
            **(compiled.host if compiled else {}),
        }
        costs = [seconds_of(each, by_kind) for each in step.groups]
        ending = seconds_of(step.ending, known.host)
        start = known.host["start_forward" if scene.trace.has_backward else "start_infer"]
        pairs = [(costs[group], times.get(index, 0.0)) for index, group in step.order]
        parts = divided(scene.works, step.order, pairs)
        parts[0].insert(0, (start, 0.0))
        parts[-1] += [(ending, seconds) for seconds in ends]
        self._lines = [Timelines(each) for each in parts]
        self._gpu_seconds = sum(each.gpu_seconds for each in self._lines)
        self._host_seconds = sum(each.host_seconds for each in self._lines)
        self._wait_seconds, self._wait_gpu_seconds = wait_seconds(scene), 0.0
        self._paces = paces(known, host, "train" if scene.trace.has_backward else "infer")
        self._pace = self._paces[1]
        self._spread = compiled.spread if compiled else spread(known, nearness, known.models.get(model, 1.0))
        if trains and optimizer in SERIAL:
            shapes = [shape for shape, _ in scene.parameter_sizes()]
            more = known.host["context_parameter"] if context else 0.0
            self._wait_seconds += (known.serial + more) * len(shapes)
            self._wait_gpu_seconds = matrix_seconds(shapes, known.matrix)

    def loads(self) -> Iterator[tuple[float, float]]:
        """Yield the arithmetic and the bytes moved of each kind of operation in a step."""
        for each, count, _ in self._items:
            yield count * each.flops, count * each.bytes
        if self._before:
            work, times = self._before
            for flops, moved in work.loads():
                yield times * flops, times * moved

    def gpu_seconds(self, peaks: Peaks) -> float:
        if peaks is PEAKS_H200:
            return self._gpu_seconds
        if self._latest[0] is not peaks:  # callers ask about the same card several times in a row
            self._latest = peaks, self.scaled.seconds_on(peaks)
        return self._latest[1]

    def seconds(self, peaks: Peaks) -> float:
        alone = self._seconds(self._slower(peaks), self._pace)
        if self._before is None:
            return alone
        work, times = self._before
        return alone + times * work.seconds(peaks)

    def seconds_where_gpu_takes(self, gpu_seconds: float, pace: float | None = None) -> float:
        """The step's time for a known GPU time, and for a known pace of the host. Used by the fits."""
        return self._seconds(gpu_seconds / max(self._gpu_seconds, 1e-9), pace or self._pace)

    def pace_where_host_takes(self, seconds: float) -> float:
        """The pace of a host that alone needs this long for the step. Used to judge tables with a slow host."""
        return seconds / (self._host_seconds + self._wait_seconds)

    @property
    def host_seconds(self) -> float:
        """What the host takes to issue the step, at its pace."""
        return self._pace * (self._host_seconds + self._wait_seconds)

    def waits_for_host(self, peaks: Peaks) -> bool:
        return self.gpu_seconds(peaks) < HOSTED_SHARE * self._seconds(self._slower(peaks), self._pace)

    def interval(self, peaks: Peaks, doubt: Sequence[float] = (0.0, 0.0)) -> tuple[float, float]:
        """Return the 10th and 90th percentile: host and GPU both at their 10th and both at their 90th percentile.
        `doubt` widens the interval down and up by what is uncertain about the card."""
        slower, (low, high), (down, up) = self._slower(peaks), self._spread, doubt
        quick, _, slow = self._paces
        found = (
            self._seconds(slower * exp(-hypot(low, down)), quick),
            self._seconds(slower * exp(hypot(high, up)), slow),
        )
        if self._before is None:
            return found
        work, times = self._before
        least, most = work.interval(peaks, doubt)
        return found[0] + times * least, found[1] + times * most

    def _slower(self, peaks: Peaks) -> float:
        """GPU time relative to the H200."""
        return self.gpu_seconds(peaks) / max(self._gpu_seconds, 1e-9)

    def _seconds(self, slower: float, pace: float) -> float:
        waits = pace * self._wait_seconds + slower * self._wait_gpu_seconds
        return sum(each.seconds(slower, pace) for each in self._lines) + waits


def paces(known: Measured, host: Host, task: str) -> list[float]:
    """The 10th percentile, median and 90th percentile of the host's pace. A known pace varies as on a host of one's
    own."""
    if isinstance(host, str):
        return known.pace[f"{host}_{task}"]
    return [host * each for each in known.pace[f"{OWN}_{task}"]]


def spread(known: Measured, nearness: float, width: float = 1.0) -> tuple[float, float]:
    """The interval of the GPU time, as logarithms. `nearness` is the share of time in or near measured operations."""
    (low, high), (low_far, high_far) = known.spread
    return width * (low_far + nearness * (low - low_far)), width * (high_far + nearness * (high - high_far))


HOSTED_SHARE: Final = 0.75
"""If the GPU is busy for a smaller share of a step than this, the host limits its speed."""


def matrix_seconds(shapes: Iterable[Sequence[int]], each: Sequence[float]) -> float:
    """GPU time of the row-by-column products that Adafactor computes for every filter of a convolution."""
    return sum(prod(shape[:-2]) * each[max(shape[-2:]) > 1] for shape in shapes if len(shape) > 2)


def optimizer_works(optimizer: str, scene: Scene) -> list[Work]:
    """The operations of one optimizer step: list operations of PyTorch's foreach form, or passes per parameter."""
    elements: Counter[str] = Counter()
    for shape, dtype in scene.parameter_sizes():
        size = 1
        for each in shape:
            size *= each
        elements[dtype] += size
    made = []
    for dtype, count in elements.items():
        for name, lists in FOREACH.get(optimizer, ()):
            made.append(work(name, [(dtype, [count], True)] * lists, [], ()))
    return made


_PASS: Final = ("_foreach_add_", 2)
_EIGHT: Final = (_PASS,) * 14
"""Its kernel looks up each number of the state in a table. On an H200 that takes as long as so many passes over weights
and gradients. Chosen with five measured steps in sight (lab/measured/fit_eight.jsonl.gz); none is left to judge."""
_ADAM: Final = (
    ("_foreach_lerp_", 2),
    ("_foreach_mul_", 1),
    ("_foreach_addcmul_", 3),
    ("_foreach_sqrt", 1),
    ("_foreach_div_", 1),
    ("_foreach_add_", 1),
    ("_foreach_addcdiv_", 3),
)
FOREACH: Final = {
    "sgd": (("_foreach_mul_", 1), ("_foreach_add_", 2), ("_foreach_add_", 2)),
    "adam": _ADAM,
    "adamw": (("_foreach_mul_", 1), *_ADAM),
    "adamw-8bit": _EIGHT,
    "paged-adamw": (_PASS,) * 4,
    "paged-adamw-8bit": _EIGHT,
    "adafactor": (
        ("linalg_vector_norm", 1),
        ("linalg_vector_norm", 1),
        ("linalg_vector_norm", 1),
        ("fill_", 1),
        ("div_", 2),
        ("clamp_", 2),
        ("rsqrt_", 2),
        ("mul_", 3),
        ("linalg_vector_norm", 1),
        ("add_", 3),
    ),
}
SERIAL: Final = frozenset({"adafactor"})
"""Optimizers that update one parameter at a time and read two norms back, so host and GPU wait for each other."""
