"""The time of a step as an interval: the GPU's operations and the host's, side by side.

A short step waits for the host, which issues every operation in Python and C++ (`estimate/host.py`). Its costs were
fitted on the servers the H200s stood in: a slower host is slower still.
"""

from collections import Counter
from math import exp, hypot, prod
from typing import Final

import msgspec

from teraflock.estimate.host import Timelines, issued, seconds_of
from teraflock.estimate.memory import Scene
from teraflock.estimate.operation import Work, work
from teraflock.estimate.speed import PEAKS_H200, Measured, Peaks, Scaled, seconds_h200

HOSTED_SHARE: Final = 0.9
"""Where the GPU is busy for less of a step than this, the host decides."""


class Seconds(msgspec.Struct, frozen=True):
    p10: float
    p50: float
    p90: float


class StepWork:
    """The operations of one step with their time on the H200: made once, then scaled to any card."""

    def __init__(
        self,
        scene: Scene,
        optimizer: str,
        known: Measured,
        precision: str,
        *,
        generator: bool = False,
        context: bool = False,
    ) -> None:
        """`context` for a step as some were measured, under `with torch.device(…)`."""
        trains = scene.trace.has_backward and not scene.trace.has_optimizer
        lists = optimizer_works(optimizer, scene) if trains else []
        step = issued(scene, optimizer, len(lists), generator=generator, context=context)
        counts = Counter(index for index, _ in step.order)
        times = {
            index: seconds_h200(each, known, precision)
            for index, each in enumerate(scene.works)
            if index in counts and each.kernel
        }
        ends = [seconds_h200(each, known, precision) for each in lists]
        items = [(scene.works[index], counts[index], seconds) for index, seconds in times.items()]
        items += [(each, 1, seconds) for each, seconds in zip(lists, ends, strict=True)]
        self._scaled = Scaled(items, tf32=precision == "tf32")
        paces = [seconds_of(each, known.host) for each in step.groups]
        ending = seconds_of(step.ending, known.host)
        start = known.host["start_forward" if scene.trace.has_backward else "start_infer"]
        self._lines = Timelines(
            [
                (start, 0.0),
                *((paces[group], times.get(index, 0.0)) for index, group in step.order),
                *((ending, seconds) for seconds in ends),
            ]
        )
        self._infers = not scene.trace.has_backward
        self._wait_seconds = self._wait_gpu_seconds = 0.0
        if trains and optimizer in SERIAL:
            shapes = [shape for shape, _ in scene.parameter_sizes()]
            self._wait_seconds = known.serial * len(shapes)
            self._wait_gpu_seconds = known.matrix * sum(prod(each[:-2]) for each in shapes if len(each) > 2)

    def gpu_seconds(self, peaks: Peaks) -> float:
        if peaks is PEAKS_H200:
            return self._lines.gpu_seconds
        return self._scaled.seconds_on(peaks)

    def seconds(self, peaks: Peaks) -> float:
        slower = self.gpu_seconds(peaks) / max(self._lines.gpu_seconds, 1e-9)
        return self._lines.seconds(slower) + self._wait_seconds + slower * self._wait_gpu_seconds

    def hosted(self, peaks: Peaks) -> bool:
        """Whether the host decides how long a step takes there."""
        return self.gpu_seconds(peaks) < HOSTED_SHARE * self.seconds(peaks)

    def interval(
        self,
        middle: float,
        peaks: Peaks,
        known: Measured,
        width: float,
        doubt: float = 0.0,
        *,
        seen: bool = True,
    ) -> Seconds:
        """Wider where the host decides, which scatters more than kernels do, above all without gradients; for short
        steps; where nothing of the model was `seen`; and by the doubt about a card."""
        kind = "host" if self.hosted(peaks) else "gpu"
        kinds = regimes(kind, self.seconds(PEAKS_H200), infers=self._infers)
        kinds += [] if seen else [f"{kind}_unseen"]
        low = min(known.spread[each][0] for each in kinds)
        high = max(known.spread[each][1] for each in kinds)
        return Seconds(
            middle * exp(-hypot(low * width, doubt)), middle, middle * exp(hypot(high * width, doubt))
        )


SHORT_SECONDS: Final = 0.03
"""On the H200. Shorter steps are made of kernels and waits too small to be told well."""


def regimes(kind: str, h200_seconds: float, *, infers: bool) -> list[str]:
    """What a step is an instance of; the widest of them counts.

    Inference that waits for the host scatters most: gpt2's operations took one process 8 ms and another 15.
    """
    own = f"{kind}_short" if h200_seconds < SHORT_SECONDS else kind
    return [own, "host_infer"] if infers and kind == "host" else [own]


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
SERIAL: Final = frozenset({"adafactor"})
"""Goes from parameter to parameter and reads two norms of each back: host and GPU wait for each other."""
