"""The peak memory on each of several GPUs that shard a model's state, as PyTorch's FSDP does: ZeRO stages 2 and 3.

It walks over the events of a trace and counts parameters, gradients and optimizer state by their shares. What each GPU
holds in addition was measured on an H200 with a fake process group (`measured/judge_sharded`):

- stage 2 holds the whole weights in addition to its shard, and frees a layer's weights once their gradients exist;
- stage 3 holds the current layer whole in addition to its shard, and everything outside the repeated layers until the
  step ends;
- gradients outside the repeated layers stay whole until the backward pass ends, those of a layer until it is done.
"""

from collections import Counter
from math import prod
from typing import Final

from teraflock.estimate.memory import Scene, optimizer_state, optimizer_temporary
from teraflock.estimate.outline import ALLOCATE, FREE, OPERATE, OPTIMIZER
from teraflock.workload.trace import DTYPE_BYTES, EVENT_KINDS

REPEATS_MIN: Final = 3
"""A parameter shape that occurs at least this often belongs to a repeated layer."""
WEIGHTS_STAGE: Final = 3


class _Live:
    """Live bytes, by how they are sharded."""

    def __init__(self, scene: Scene, stage: int, gpus: int, *, offload: bool) -> None:
        self.share = 1 / gpus
        self.state_share = 0.0 if offload else self.share
        self.stage = stage
        self.outside, self.layer = layers(scene)
        self.bytes = dict.fromkeys("pgGorx", 0)

    def key(self, letter: str, size: int, *, in_optimizer: bool) -> str:
        """`G`: a gradient outside the repeated layers. `x`: a temporary of the optimizer. `r`: the rest."""
        if letter == "g":
            return "G" if size in self.outside else "g"
        return letter if letter in "po" else "x" if in_optimizer else "r"

    def computing(self) -> float:
        """Live bytes during the forward and backward pass."""
        live, share = self.bytes, self.share
        if self.stage == WEIGHTS_STAGE:
            whole = min(live["p"], sum(size * count for size, count in self.outside.items()) + self.layer)
        else:
            whole = max(0, live["p"] - live["g"])
        weights = live["p"] * share + whole
        gradients = live["G"] + live["g"] * share + (self.layer if live["g"] else 0.0)
        return weights + gradients + live["o"] * self.state_share + live["r"]

    def stepping(self, temporary: int = 0) -> float:
        """Live bytes during the optimizer's step, which works on shards only."""
        live = self.bytes
        split = live["p"] + live["g"] + live["G"]
        return split * self.share + (live["o"] + live["x"] + temporary) * self.state_share + live["r"]


def layers(scene: Scene) -> tuple[Counter[int], float]:
    """The sizes of the parameters outside the repeated layers, with their counts, and the bytes of one layer."""
    shapes = Counter(
        (tuple(scene.sizes[at] for at in each.shape), each.dtype) for each in scene.trace.parameters
    )
    repeats = min((count for count in shapes.values() if count >= REPEATS_MIN), default=0)
    outside: Counter[int] = Counter()
    inside = 0
    for (shape, dtype), count in shapes.items():
        size = prod(shape) * DTYPE_BYTES[dtype]
        if count >= REPEATS_MIN:
            inside += size * count
        else:
            outside[size] += count
    return outside, inside / repeats if repeats else 0.0


def sharded_peak(
    scene: Scene, optimizer: str, *, cublas_bytes: int, stage: int, gpus: int, offload: bool = False
) -> int:
    """The live peak on each GPU, without convolution workspaces. The optimizer's state already exists."""
    live = _Live(scene, stage, gpus, offload=offload)
    trains = scene.trace.has_backward and not scene.trace.has_optimizer
    parameters = scene.parameter_sizes()
    sizes = [prod(shape) * DTYPE_BYTES[dtype] for shape, dtype in parameters]
    if trains:
        states = zip(parameters, sizes, strict=True)
        live.bytes["o"] = sum(sum(optimizer_state(optimizer, shape, size)) for (shape, _), size in states)
    live.bytes["r"] = (1 + scene.trace.has_backward) * cublas_bytes * any(scene.matmuls)
    peak = _walk(scene, live)
    if trains:
        peak = max(peak, live.stepping(optimizer_temporary(optimizer, sizes)))
    return round(peak)


def _walk(scene: Scene, live: _Live) -> float:
    kinds, counted, peak = scene.trace.kinds, live.bytes, 0.0
    born: list[tuple[str, int]] = []
    for part in (scene.setup, scene.step):
        in_optimizer = False
        for event in part:
            kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
            workspace = 0
            if kind == ALLOCATE:
                size = scene.sizes[argument]
                key = live.key(kinds[len(born)], size, in_optimizer=in_optimizer)
                born.append((key, size))
                counted[key] += size
            elif kind == FREE:
                key, size = born[-argument]
                counted[key] -= size
                continue
            elif kind == OPERATE:
                workspace = scene.workspaces[argument]
                if not workspace:
                    continue
            else:
                in_optimizer = argument == OPTIMIZER
                continue
            if part is scene.step:
                peak = max(peak, (live.stepping() if in_optimizer else live.computing()) + workspace)
    return peak
