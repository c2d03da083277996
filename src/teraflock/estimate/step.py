"""The time of a step: the GPU's work, the host's work, whichever is more, as an interval.

The host issues every operation in Python and C++; a short step waits for it. Its cost was fitted on runs
that were bound by it, on one server CPU: a slower host is slower still.
"""

from collections import Counter
from collections.abc import Sequence
from math import exp, hypot
from typing import Final

import msgspec

from teraflock.estimate.memory import Scene
from teraflock.estimate.operation import Work, work
from teraflock.estimate.speed import PEAKS_H200, Measured, Peaks, Scaled, seconds_h200

JOINT: Final = 6.0
"""How sharply the larger of host and GPU wins; near the crossing each delays the other a little."""


class Seconds(msgspec.Struct, frozen=True):
    p10: float
    p50: float
    p90: float


class _Part:
    """Operations that run back to back, summed for any card."""

    def __init__(self, items: Sequence[tuple[Work, int, float]], *, tf32: bool) -> None:
        self._h200_seconds = sum(count * seconds for _, count, seconds in items)
        self._scaled = Scaled(items, tf32=tf32)

    def seconds_on(self, peaks: Peaks) -> float:
        return self._h200_seconds if peaks is PEAKS_H200 else self._scaled.seconds_on(peaks)


class StepWork:
    """The operations of one step with their time on the H200: made once, then scaled to any card."""

    def __init__(
        self, scene: Scene, optimizer: str, known: Measured, *, tf32: bool, drag: float = 1.0
    ) -> None:
        self._drag = drag
        counts = Counter(id(each) for each in scene.step_works())
        items: list[tuple[Work, int, float]] = [
            (each, counts[id(each)], seconds_h200(each, known, tf32=tf32))
            for each in scene.works
            if counts.get(id(each)) and each.kernel
        ]
        trained = sum(each.trainable for each in scene.trace.parameters) if scene.trace.has_backward else 0
        self._after: _Part | None = None
        self._wait_seconds = 0.0
        if scene.trace.has_backward and not scene.trace.has_optimizer:
            lists = [
                (each, 1, seconds_h200(each, known, tf32=tf32)) for each in optimizer_works(optimizer, scene)
            ]
            if optimizer in SERIAL:
                self._after, self._wait_seconds = _Part(lists, tf32=tf32), known.serial * trained
            else:
                items += lists
        self._part = _Part(items, tf32=tf32)
        # What a step over lists costs the host is in the rate per parameter.
        singles = sum(counts[id(each)] for each in scene.works if not each.name.startswith(LISTS))
        self.host_seconds = sum(
            rate * count
            for rate, count in zip(known.host, (singles, scene.trace.views, trained), strict=True)
        )

    def gpu_seconds(self, peaks: Peaks) -> float:
        return self._part.seconds_on(peaks)

    def seconds(self, peaks: Peaks) -> float:
        gpu = self.gpu_seconds(peaks)
        after = self._after.seconds_on(peaks) + self._wait_seconds if self._after else 0.0
        return self._drag * float((gpu**JOINT + self.host_seconds**JOINT) ** (1 / JOINT)) + after

    def interval(
        self, middle: float, peaks: Peaks, known: Measured, width: float, doubt: float = 0.0
    ) -> Seconds:
        """Wider where the host decides, which scatters more than kernels do, and by the doubt about a card."""
        hosted = self.host_seconds > 0.8 * self.gpu_seconds(peaks)
        low, high = known.spread["host" if hosted else "gpu"]
        return Seconds(
            middle * exp(-hypot(low * width, doubt)), middle, middle * exp(hypot(high * width, doubt))
        )


def optimizer_works(optimizer: str, scene: Scene) -> list[Work]:
    """The operations of one optimizer step: lists, as PyTorch's foreach form runs them, or its passes over each."""
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
LISTS: Final = ("_foreach", "_fused")
"""How operations on whole lists of tensors begin; among recorded ones, those of a script's own optimizer."""
SERIAL: Final = frozenset({"adafactor"})
"""Goes from parameter to parameter and reads two norms of each back: host and GPU wait for each other."""
