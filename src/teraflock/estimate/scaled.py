"""Scales times measured on the H200 to any card, by what limits each operation (`estimate/bounds.py`).

Invariants: the operations are read once, and each card then costs one pass over numbers. For the peaks of the H200 the
sum equals the measured time.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import exp, log2
from typing import Final

from teraflock.estimate.bounds import (
    CONVOLUTION,
    DEPTHWISE,
    MATMUL,
    PLAIN,
    SINGLE,
    CardModel,
    card_model,
    sm_kind,
    sm_share,
    work_class,
)
from teraflock.estimate.operation import Work
from teraflock.estimate.reach import Reach, fitted, shape
from teraflock.estimate.speed import PEAKS_H200, Peaks, floor_seconds, plain_kind, rate, rate_kind

LAUNCH_SECONDS: Final = 2.2e-6
"""Launch time of each operation, the same on every card."""
PLAIN_RATES: Final = frozenset({"matmul", "tf32", "square", "other"})
"""Rates for which cards without TF32 run other kernels than the H200. These have their own curves. Convolutions over
single pixels (`point`) take a launch and little else on every card."""
HALF_PRODUCTS: Final = (MATMUL, "half")
"""Class and rate of matrix products in 16 bits."""
HALF_CLASSES: Final = frozenset({HALF_PRODUCTS, (CONVOLUTION, "half")})
"""Classes and rates that use tensor cores in 16 bits. Without them, the libraries compute in fp32."""
HALF_CONVERTED: Final = 1.3
"""Time of convolutions in 16 bits without tensor cores, relative to their arithmetic in fp32. Set after 28 public steps
of a Titan Xp in fp16, which neither the fit nor the judgement uses."""
PLAIN_PASSES: Final = 1.2
"""Passes over memory of an fp32 convolution that does not change the layout, relative to one pass."""
OVER_MAX: Final = 1.2
"""The longest time of a pass that memory limits, relative to its floor. A pass that takes longer on the H200
waits for the SMs."""
MEMORY_AGES: Final = 0.3
"""How much of the slowdown of old generations in passes and norms applies to memory, as an exponent. Single operators
suggest 0 and whole steps suggest 1. We tried a few values and chose one that makes no precision too fast."""
IDLE_SHARE: Final = 0.5
"""For a pass that memory limits on the H200: the share of its time that the SMs alone would need. Such passes become
slower when only a third of the SMs or fewer are available."""
ROWS_MIDDLE: Final = 2.0**14
ROWS_SHARE: Final = 0.5


def seconds_on(work: Work, seconds_there: float, peaks: Peaks, *, tf32: bool) -> float:
    """Scale the time of one operation from the H200 to another card."""
    return Scaled([(work, 1, seconds_there)], tf32=tf32).seconds_on(peaks)


class Scaled:
    """Many operations with their times on the H200, prepared so that one pass sums them for any card."""

    def __init__(
        self,
        items: Sequence[tuple[Work, int, float]],
        *,
        tf32: bool,
        reach: Reach | None = None,
        model: CardModel | None = None,
    ) -> None:
        model, reach = model or card_model(), reach or fitted()
        self.items, self.tf32 = items, tf32
        self._bytes_per_clock = model.bytes_per_clock
        self._clock_power = model.clock
        self._pass_share = model.sm_share[SINGLE]
        self.fixed = 0.0
        # Per pass: effective bytes (divided by a card's bandwidth they give seconds), and seconds of the SMs.
        self._passes: list[tuple[float, float]] = []
        # Per operation, by class and rate: effective bytes and flops, which determine its floor.
        self._floors: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        # Time above these floors: seconds that do not depend on the number of SMs, and seconds that all SMs share.
        self._above: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        # The same per matrix product in 16 bits: a lowered tensor rate limits some of them.
        self._products: list[tuple[float, float, float, float]] = []
        # By class and rate: bytes and arithmetic in plain fp32. By class and rate in fp32: the same for 16 bits.
        self._plain: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        self._plain_half: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        for work, count, seconds in items:
            fixed = min(seconds, LAUNCH_SECONDS)
            self.fixed += count * fixed
            self._add(work, count, seconds - fixed, tf32=tf32, model=model)
            key = work_class(work, tf32=tf32), rate_kind(work, tf32=tf32)
            if key[1] in PLAIN_RATES or key in HALF_CLASSES:
                arithmetic = count * work.flops * plain_share(work, reach, model)
                pair = PLAIN_PASSES * work.bytes * count, arithmetic
                if key in HALF_CLASSES:
                    self._plain_half[key[0], plain_kind(work)].append(pair)
                else:
                    self._plain[key].append(pair)

    def _add(self, work: Work, count: int, seconds: float, *, tf32: bool, model: CardModel) -> None:
        floor = max(floor_seconds(work, PEAKS_H200, tf32=tf32), 1e-12)
        if sm_kind(work) == SINGLE:
            over = seconds / floor
            sms = count * seconds * (1.0 if over > OVER_MAX else IDLE_SHARE)
            self._passes.append((count * work.bytes * min(over, OVER_MAX), sms))
            return
        key, share = (work_class(work, tf32=tf32), rate_kind(work, tf32=tf32)), sm_share(work, model)
        base = count * min(1.0, seconds / floor)
        self._floors[key].append((work.bytes * base, work.flops * base))
        above = count * max(0.0, seconds - floor)
        self._above[key][0] += above * (1 - share)
        self._above[key][1] += above * share
        if key == HALF_PRODUCTS:
            self._products.append((work.bytes * base, work.flops * base, above * (1 - share), above * share))

    def seconds_on(self, peaks: Peaks) -> float:
        slower = {
            CONVOLUTION: peaks.convolution,
            MATMUL: peaks.matmul,
            DEPTHWISE: peaks.depthwise,
            PLAIN: peaks.plain,
        }
        bandwidth = self._bandwidth(peaks)
        memory = peaks.rest**MEMORY_AGES
        total = self.fixed + self._in_passes(
            bandwidth / memory, self._sms_slower(peaks, self._pass_share) * peaks.rest
        )
        for key in self._floors:
            work, kind = key
            arithmetic = rate(kind, peaks)
            if self.in_plain(key, peaks):
                total += _floor(self._plain[key], bandwidth, arithmetic)
                continue
            if key in HALF_CLASSES and not peaks.half:
                total += self._without_tensor_cores(work, peaks, bandwidth)
                continue
            if key == HALF_PRODUCTS and peaks.half_unhalved > peaks.half:
                total += self._in_lowered_products(peaks, bandwidth)
                continue
            alone, shared = self._above[key]
            above = alone * self._sms_slower(peaks, 0.0) + shared * self._sms_slower(peaks, 1.0)
            floor = _floor(self._floors[key], bandwidth, arithmetic)
            total += (floor + above) * slower[work] if work in slower else floor * memory + above * peaks.rest
        return total

    def in_plain(self, key: tuple[str, str], peaks: Peaks) -> bool:
        """Whether a card runs operations of a class and rate in plain fp32, with other kernels than the H200."""
        return key in self._plain and bool(peaks.square) and (key[1] == "matmul" or not peaks.tf32)

    def _without_tensor_cores(self, work: str, peaks: Peaks, bandwidth: float) -> float:
        """Convolutions or matrix products in 16 bits that run in fp32, with half of the bytes."""
        slower = HALF_CONVERTED if work == CONVOLUTION else 1.0
        return slower * sum(
            _floor(pairs, bandwidth, rate(kind, peaks))
            for (its, kind), pairs in self._plain_half.items()
            if its == work
        )

    def _in_lowered_products(self, peaks: Peaks, bandwidth: float) -> float:
        """Matrix products in 16 bits on a card with a lowered tensor rate. It can reach all of that rate, because the
        rest of its SMs is as fast as beside full tensor cores: each product takes the longer of the two times."""
        alone, shared = self._sms_slower(peaks, 0.0), self._sms_slower(peaks, 1.0)
        total = 0.0
        for moved, flops, above_alone, above_shared in self._products:
            floor = max(moved / bandwidth, flops / peaks.half_unhalved)
            rest = (floor + above_alone * alone + above_shared * shared) * peaks.matmul
            total += max(flops / peaks.half, rest)
        return total

    def _in_passes(self, bandwidth: float, sms: float) -> float:
        per_byte, total = 1 / bandwidth, 0.0
        for moved, seconds in self._passes:
            by_memory, by_sms = moved * per_byte, seconds * sms
            total += by_memory if by_memory > by_sms else by_sms
        return total

    def _bandwidth(self, peaks: Peaks) -> float:
        """The bandwidth that the card can use: too few SMs cannot saturate the memory."""
        return min(peaks.bandwidth * peaks.bandwidth_reach, peaks.sms * peaks.clock * self._bytes_per_clock)

    def _sms_slower(self, peaks: Peaks, share: float) -> float:
        """How many times longer than on the H200 the SMs take for work of which `share` is split among them."""
        clocks = float((PEAKS_H200.clock / peaks.clock) ** self._clock_power)
        return clocks * (1 - share + share * PEAKS_H200.sms / peaks.sms)


def _floor(pairs: Sequence[tuple[float, float]], bandwidth: float, arithmetic: float) -> float:
    total = 0.0
    for moved, flops in pairs:
        by_memory, by_arithmetic = moved / bandwidth, flops / arithmetic
        total += by_memory if by_memory > by_arithmetic else by_arithmetic
    return total


def plain_share(work: Work, reach: Reach, model: CardModel) -> float:
    """Time of a matrix product or convolution in plain fp32, relative to its arithmetic at the peak rate.

    The result can be below 1 for a 3x3 convolution, because Winograd needs less arithmetic. The single operators that
    its curve was fitted on depend more on the number of rows than whole steps do, so the rows are damped.
    """
    if ":grouped:" in work.family:
        start, slope = model.grouped[work.family[len("conv")]]
        return exp(start + slope * log2(work.dims[2]))
    intensity = work.flops / max(1.0, work.bytes)
    if not (work.family.startswith("conv") and work.family.endswith(":k")):
        more = model.plain.get(work.family, 0.0)
        return exp(reach.matmul_curve.at(shape(work.dims, intensity)) + more)
    rows, *others = work.dims
    rows = ROWS_MIDDLE * 2 ** (ROWS_SHARE * log2(max(1.0, rows) / ROWS_MIDDLE))
    return exp(reach.convolution_curve.at(shape((rows, *others), intensity)))
