"""The time of one operation on the H200: its roofline floor times a measured factor.

The floor is the larger of arithmetic over peak rate and bytes over bandwidth. The factor above the floor was measured
on an H200 and fitted per family as a curve over the operation's sizes (`data/h200.json`). `estimate/scaled.py` scales
the result to other cards.
"""

import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache
from math import exp, inf, log, log2
from typing import Final

import msgspec

from teraflock.estimate.operation import INDEXED, LAST, POINTWISE, RECURRENT, VOLUME, Work

FLOOR_SECONDS: Final = 1e-6


CLOCK_H200: Final = 1.983e9


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """The peak rates of a card, per second."""

    bandwidth: float
    fp32: float
    tf32: float
    half: float
    """0 without tensor cores: products in 16 bits then run in fp32 (`Scaled`)."""
    half_unhalved: float = 0.0
    """The 16-bit tensor rate of the chip if its maker had not lowered it, as on GeForce cards. Never below `half`; 0 on
    the H200."""
    sms: int
    fp32_reach: float = 1.0
    """Share of the fp32 peak that a matrix product reaches, relative to `Reach.matmul_curve`; 1 on the H200."""
    bandwidth_reach: float = 1.0
    square: float = 0.0
    """The rate of 3x3 convolutions in plain fp32, relative to `Reach.convolution_curve`; 0 on the H200."""
    clock: float = CLOCK_H200
    """Boost clock of the SMs in Hz."""
    convolution: float = 1.0
    """Time of convolutions on tensor cores, relative to what the H200's times predict. The next four are alike."""
    matmul: float = 1.0
    depthwise: float = 1.0
    plain: float = 1.0
    rest: float = 1.0


PEAKS_H200: Final = Peaks(bandwidth=4.8e12, fp32=67e12, tf32=494.7e12, half=989.4e12, sms=132)


class Measured(msgspec.Struct, frozen=True, eq=False):
    workspace: dict[str, float]
    time: dict[str, list[float]]
    points: dict[str, msgspec.Raw]
    """Curve → the points that `near` decodes. A workload uses a few of hundreds; decoding all would take 4 ms."""
    host: dict[str, float]
    """Seconds on an undisturbed host, by kind of cost (`estimate/host.py`)."""
    serial: float
    """Host seconds per parameter tensor for an optimizer that waits for the GPU at each of them."""
    matrix: list[float]
    """GPU seconds for one of the many small matrix products that such an optimizer computes for a convolution: with
    one row and column, and with more."""
    pace: dict[str, list[float]]
    """Factor on the host costs above, by `shared` or `own` with `_infer` or `_train`: 10th percentile, median and
    90th percentile over held-out steps."""
    spread: list[list[float]]
    """Logarithms of measured over predicted time for steps that the GPU limits: 10th and 90th percentile over held-out
    steps. First if all operations are close to measured ones, then if none is."""
    models: dict[str, float]
    """Factor on that interval for a model of the zoo, from the errors of its other steps."""

    @cache  # noqa: B019  # one set of measurements for the whole process
    def near(self, curve: str) -> list[list[float]]:
        """Measured operations, ordered by their first coordinate. The last number of each is its distance from the
        curve."""
        raw = self.points.get(curve)
        return msgspec.json.decode(raw, type=list[list[float]]) if raw else []


@cache
def measured() -> Measured:
    # no pathlib or importlib.resources, as in catalog/cards.py
    with open(f"{os.path.dirname(__file__)}/data/h200.json", "rb") as file:  # noqa: PTH120, PTH123
        return msgspec.json.decode(file.read(), type=Measured)


def floor_seconds(work: Work, peaks: Peaks, *, tf32: bool) -> float:
    """The minimum time: the larger of arithmetic and memory."""
    moved = work.bytes / (peaks.bandwidth * peaks.bandwidth_reach)
    if not work.flops:
        return moved
    return max(moved, work.flops / rate(rate_kind(work, tf32=tf32), peaks))


def rate_kind(work: Work, *, tf32: bool) -> str:
    """Which of a card's rates applies to an operation."""
    if ":depthwise" in work.family:
        return "fp32"
    if work.dtype == "h":
        return "half"
    return "tf32" if tf32 and work.family == "matmul" else plain_kind(work)


def plain_kind(work: Work) -> str:
    """Which rate applies to an operation in fp32."""
    if work.family.startswith("conv"):
        if work.family.endswith(":point"):
            return "point"
        return "square" if work.family.endswith(":k") else "other"
    return "matmul" if work.family == "matmul" else "fp32"


def rate(kind: str, peaks: Peaks) -> float:
    if kind == "half":
        return peaks.half or peaks.fp32 * peaks.fp32_reach
    if kind == "square":
        return peaks.tf32 or peaks.square or peaks.fp32 * peaks.fp32_reach
    if kind in ("other", "point"):
        return peaks.tf32 or peaks.fp32 * peaks.fp32_reach
    if kind == "tf32" and peaks.tf32:
        return peaks.tf32
    return peaks.fp32 * peaks.fp32_reach


def features(work: Work, floor: float) -> list[float]:
    """The position of an operation on its curve: a constant, then logarithms of its sizes."""
    scale = log2(max(floor, 1e-9) / 1e-6) / 10
    if work.family == "matmul" or work.family.startswith("conv"):
        rows, columns, inner, batch = work.dims
        m, n, k = (log2(max(1.0, each)) / 10 for each in (rows, columns, inner))
        intensity = log2(max(1.0, work.flops / max(1.0, work.bytes))) / 10
        return [
            1.0, scale, scale * scale, m, n, k, n * n, k * k, intensity, intensity * intensity,
            log2(max(1.0, batch)) / 10, float(work.odd),
        ]  # fmt: skip
    if work.family.startswith("attention"):
        rows, heads, width, causal = work.dims
        return [1.0, scale, log2(rows) / 10, log2(heads) / 10, log2(width) / 10, causal]
    row, strided, channels = work.dims
    return [1.0, scale, scale * scale, log2(max(1.0, row)) / 10, strided, log2(max(1.0, channels)) / 10]


def place(work: Work, floor: float) -> tuple[float, ...]:
    """Coordinates that measure how similar two operations of one family are, the most telling first. 0.1 is a factor of
    two. Relative to the floor, the time of one layer at two batch sizes differs less than the time of two layers."""
    scale = log2(max(floor, 1e-9) / 1e-6) / 10
    if work.family == "bytes":
        row, strided, channels = work.dims
        return scale, log2(max(1.0, row)) / 20, strided / 4, log2(max(1.0, channels)) / 20
    if work.family.startswith("attention"):
        rows, heads, width, causal = work.dims
        return log2(rows) / 10, scale / 2, log2(heads) / 20, log2(width) / 10, causal / 4
    rows, columns, inner, batch = (log2(max(1.0, each)) / 10 for each in work.dims)
    sizes = (columns, inner, batch, LAYER * scale, LAYER * rows)
    return (*sizes, work.odd / 4) if work.family.startswith("conv") else sizes


LAYER: Final = 0.35
"""Distance between two batch sizes relative to two layers. We tried a few values and kept the one with the smallest
error on held-out steps."""


def curve_keys(work: Work, precision: str) -> list[str]:
    """The curves to try, from the most specific to the most general."""
    dtype = work.dtype
    if work.family == "bytes":
        name = work.name.replace("cudnn_batch_norm", "native_batch_norm")
        # cuDNN normalises float16 only under autocast, where weights are float32, and never bfloat16.
        own = [f"{name}:cudnn"] if dtype == "h" and precision == "amp-fp16" and name in CUDNN_NORMS else []
        return [*own, f"{name}:{dtype}", f"bytes:{name}", "bytes"]
    if work.family == "matmul":
        return [f"matmul:{'t' if precision == 'tf32' and dtype == 'f' else dtype}", "matmul"]
    head, _, _ = work.family.partition(":")
    # cuDNN has kernels for depthwise convolutions in float16 only.
    own = (
        [f"{work.family}:fp16"] if dtype == "h" and precision in FP16 and ":depthwise" in work.family else []
    )
    usual = [work.family]
    if work.family.endswith((LAST, VOLUME)):
        usual.append(work.family[:-1])
    return [*own, *(f"{each}:{dtype}" for each in usual), *usual, head]


STREAM: Final = "mul"
STREAMS: Final = frozenset(
    {
        "abs", "addcdiv", "addcmul", "atan2", "bitwise_and", "bitwise_not", "bitwise_or", "celu", "clamp", "clamp_max",
        "clamp_min", "clamp_min_", "cos", "elu", "elu_backward", "eq", "erf", "exp", "exp_", "expm1", "floor", "ge",
        "gt", "hardtanh", "isnan", "le", "leaky_relu", "leaky_relu_", "leaky_relu_backward", "lerp", "log", "log1p",
        "log_", "logical_and", "logical_not", "logical_or", "logit", "lt", "masked_fill", "maximum", "minimum", "mish",
        "mish_backward", "ne", "neg", "neg_", "pow", "pow_", "reciprocal", "relu6", "remainder", "round", "rsqrt",
        "rsub", "sigmoid", "sigmoid_", "sign", "sin", "softplus", "softplus_backward", "sqrt", "sqrt_", "square",
        "sub_", "tanh", "tanh_", "xlogy",
    }
)  # fmt: skip
"""Operations on single numbers that take as long as a multiplication of as many bytes, if they have no curve. All that
were measured on large tensors take 1.1 to 1.4 times as long as the bytes alone."""
STREAM_SECONDS: Final = 20e-6
STREAM_MOST: Final = {"f": (log(1.45), log(2.2)), "h": (log(1.5), log(3.8)), "m": (log(2.2), log(3.9))}
"""No contiguous one with this floor was measured to take longer, relative to the floor: with inputs of one shape, and
with others. By type; `m` is two types. Curves that were fitted on images do not know this for rows of a table."""
INDEXED_MOST: Final = log(10.0)
"""The same for reading and writing at positions."""
FP16: Final = ("fp16", "amp-fp16")


CUDNN_NORMS: Final = frozenset({"native_batch_norm", "native_batch_norm_backward"})
LOG_MAX: Final = 6.0
"""The largest measured value: sorting a few thousand indices takes 200 microseconds."""


NEAR: Final = 0.04  # the distance, in coordinates, over which a measured operation informs others
REACH: Final = 2.2 * NEAR  # operations further away are ignored
WIDER: Final = 1.001
DOUBT: Final = 0.1  # one operation at distance 0 has the weight 1 / (1 + DOUBT)


def seconds_h200(work: Work, known: Measured, precision: str) -> float:
    """Time of one operation on the H200, including the gap at its launch."""
    return timed_h200(work, known, precision)[0]


def timed_h200(work: Work, known: Measured, precision: str) -> tuple[float, float]:
    """Time and nearness: 1 next to measured operations, 0 far from all of them."""
    if work.family == RECURRENT:
        return recurrent_seconds(work), 0.0
    floor = floor_seconds(work, PEAKS_H200, tf32=precision == "tf32")
    if work.name in BOX_SECONDS:
        return BOX_SECONDS[work.name] * work.dims[2] + floor + FLOOR_SECONDS, 0.0
    if work.name in ROWS and work.dims[0] >= ROW_MIN:
        factor, least, each = ROWS[work.name]
        return max(factor * floor, least + each * work.dims[2]), 0.0
    above, nearness = _above(work, floor, known, precision)
    seconds = exp(above) * max(floor, FLOOR_SECONDS)
    if work.dtype == "h" and work.family.endswith(LAST) and f"{work.family}:h" not in known.time:
        # A curve of the usual layout, for which cuDNN copies images and weights to this one and back.
        count = LAYOUT_COPIES[work.family.startswith("convb")]
        copies = count * LAYOUT_SECONDS + 2 * work.bytes / (LAYOUT_REACH * PEAKS_H200.bandwidth)
        seconds = max(seconds - copies, LAYOUT_LEAST * seconds)
    return seconds, nearness


LAYOUT_COPIES: Final = (3, 5)
"""How many tensors a convolution in 16 bits copies to another layout, forward and backward."""
LAYOUT_SECONDS: Final = 3e-6
LAYOUT_REACH: Final = 0.5
"""The least time of a copy, and the share of the bandwidth that it reaches. Chosen with ten convolutions of
`fp16_accumulate` and the step of `cifar_wide` in sight (lab/measured/README.md)."""
LAYOUT_LEAST: Final = 0.6
BOX_SECONDS: Final = {"nms": 0.37e-6, "_roi_align_backward": 1e-10}
"""Per box, of which one is decided after the other, and per number that is added to an image. Chosen with the
operations of `detector` in sight (lab/measured/README.md)."""
ROW_MIN: Final = 2
_READ: Final = (1.0, 5e-6, 0.6e-9)
_SORTED: Final = (4.0, 60e-6, 0.225e-9)
_ADDED: Final = (4.2, 5e-6, 0.0)
ROWS: Final = {
    **dict.fromkeys(("index.rows", "index_select.rows", "gather.rows"), _READ),
    **dict.fromkeys(("index_put.rows", "index_put_.rows", "_index_put_impl_.rows"), _SORTED),
    **dict.fromkeys(("index_add.rows", "index_add_.rows", "scatter_add.rows", "scatter_add_.rows"), _ADDED),
}
"""Whole rows at given positions: the factor on the time to move them, the least seconds, and more for each position.
Chosen with the operations of `swin_t` and of one script in sight: `graph_attention` (lab/measured/README.md)."""
RECURRENT_STEP: Final = {"_cudnn_rnn": (5e-6, 1.25e-14), "_cudnn_rnn_backward": (11e-6, 2e-14)}
"""Seconds of a step in time of a recurrent layer, and more for each operation of arithmetic. Both directions run at
once. Chosen with the kernels of five recorded scripts in sight (`fit_scripts` in lab/measured/README.md), all in
float32."""
RECURRENT_WHOLE: Final = {"_cudnn_rnn": 1e-14, "_cudnn_rnn_backward": 2.2e-14}
"""Seconds for each operation of arithmetic on the inputs, which are there for all steps at once."""
RECURRENT_ODD: Final = 2.3
"""Factor on a step if the hidden size is not a multiple of four: other kernels."""


def recurrent_seconds(work: Work) -> float:
    steps, arithmetic, whole = work.dims
    least, more = RECURRENT_STEP[work.name]
    step = (least + more * arithmetic) * (RECURRENT_ODD if work.odd else 1.0)
    moved = work.bytes / PEAKS_H200.bandwidth
    return steps * step + whole * RECURRENT_WHOLE[work.name] + moved


def mean_nearness(timed: Iterable[tuple[float, float]]) -> float:
    """The mean nearness of operations, weighted by their seconds."""
    total = near = 0.0
    for seconds, nearness in timed:
        total += seconds
        near += seconds * nearness
    return near / max(total, 1e-9)


def _above(work: Work, floor: float, known: Measured, precision: str) -> tuple[float, float]:
    """Logarithm of time over floor, from the family's curve and its nearest measured operations, and the nearness."""
    keys = curve_keys(work, precision)
    if work.name in STREAMS:
        keys.insert(-1, f"{STREAM}:{work.dtype}")
    for key in keys:
        curve = known.time.get(key)
        if curve:
            total = _on_curve(features(work, floor), curve, known.time[key + "|range"])
            more, nearness = nearby(place(work, floor), known.near(key))
            return min(max(total + more, -1.0), _most(work, floor)), nearness
    return log(2.0), 0.0


def _most(work: Work, floor: float) -> float:
    """The largest logarithm of time over floor."""
    plain, broadcast = STREAM_MOST.get(work.dtype, (LOG_MAX, LOG_MAX))
    if floor < STREAM_SECONDS or work.family != "bytes":
        return LOG_MAX
    if work.name in INDEXED:
        return INDEXED_MOST
    if work.dims[1]:
        return LOG_MAX
    if work.name.endswith(".broadcast"):
        return broadcast
    return plain if work.name in STREAMS or work.name in POINTWISE else LOG_MAX


def _on_curve(row: Sequence[float], curve: Sequence[float], bounds: Sequence[float]) -> float:
    # Outside the measured range the curve is constant, because polynomials do not extrapolate.
    total = curve[0]
    for at in range(1, len(row)):
        total += curve[at] * min(max(row[at], bounds[2 * at - 2]), bounds[2 * at - 1])
    return total


def nearby(spot: tuple[float, ...], points: Sequence[list[float]]) -> tuple[float, float]:
    """Mean distance of nearby measured operations from the curve, and the nearness."""
    reach = REACH
    first, second, *others = spot
    weight = total = 0.0
    begin, end = bisect_left(points, [first - reach]), bisect_left(points, [first + reach, inf])
    # Most points near in the first coordinate are far in the second. The exact limit is checked below.
    least, most = second - WIDER * reach, second + WIDER * reach
    limit, width = reach * reach, NEAR * NEAR
    for point in [each for each in points[begin:end] if least < each[1] < most]:
        apart, across = first - point[0], second - point[1]
        distance = apart * apart + across * across
        if distance >= limit:
            continue
        at = 2
        for mine in others:
            apart = mine - point[at]
            distance += apart * apart
            at += 1
        if distance < limit:
            share = exp(-distance / width)
            weight += share
            total += share * point[-1]
    return total / (weight + DOUBT), weight / (weight + DOUBT)
