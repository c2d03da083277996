"""The host time of a step, and the step time that follows from the timelines of host and GPU.

The host issues operations in order. The GPU runs them in order, each after it was issued. The step ends when both are
done. The host time of an operation depends on what issues it: Python without gradients (`infer`), Python that also
records what the backward pass needs (`forward`), or the autograd thread (`backward`). The seconds per kind are for an
undisturbed host; `lab/fit.py` fitted them. Machines share their cores, so a host is usually slower. The factor is its
pace.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from teraflock.estimate.memory import Scene
from teraflock.estimate.operation import LISTS, RECURRENT, WAITS, Work
from teraflock.workload.trace import EVENT_KINDS, FUSED, EventKind, Mark

Weights = dict[str, float]
"""The average number of times that each kind of cost applies to one operation. Kinds:

- `infer_`, `forward_`, `backward_` with `operation`, `convolution`, `cast`; `nothing` if it starts no kernel;
- `infer_view`, `forward_view`: creating a view of a tensor, including its backward pass;
- `gradient` per parameter, `sgd` and `adam` per parameter of these optimizers;
- `compiled_library`, `compiled_fused` per call of a library or fused kernel under `torch.compile`, and
  `compiled_parameter` per trained parameter (`estimate/compiled.py`);
- `list_tensor` per tensor of an operation on lists, such as those of a script's own optimizer, and `correction` per
  tensor whose step Adam corrects;
- `cell` per step in time of each layer and direction of a recurrent network of cuDNN;
- `unpack` per product with weights of 4 bits, in addition to the operation (`estimate/quantized.py`);
- `segment` per part that checkpointing recomputes, in addition to its operations;
- `generator_infer`, `generator` per operation of the zoo's generators;
- `context` per Python call and `context_parameter` per parameter of an optimizer: the overhead of
  `with torch.device(…)`, under which some of the steps were measured. Estimates for users never include it.
"""

OPERATE: Final = int(EventKind.OPERATE)
MARK: Final = int(EventKind.MARK)
BACKWARD: Final = int(Mark.BACKWARD)
OPTIMIZER: Final = int(Mark.OPTIMIZER)
UNPACKS: Final = "dequantize"
"""The operation that unpacks weights of 4 bits for one product."""
UNPACK: Final = "unpack"
PLAIN: Final = int(Mark.PLAIN)
LIST: Final = "list_tensor"
LIST_SECONDS: Final = 1.45e-6
"""For each tensor of each operation on lists. A step of SGD has three such operations: together they cost as much as
the `sgd` of a parameter."""
CORRECTED: Final = "_foreach_addcdiv_"
CORRECTION: Final = "correction"
CORRECTION_SECONDS: Final = 7e-6
"""For each tensor of the last operation of Adam. Python counts its steps and computes its correction: with seven other
operations on lists, this costs as much as the `adam` of a parameter."""
LISTED: Final = frozenset({"list", CORRECTED})
"""Kinds of operations on lists."""
CELL: Final = "cell"
CELL_SECONDS: Final = 13e-6
"""cuDNN starts several kernels for each step in time. So measured for six layers with 512 and 1024 hidden numbers
(`fit_sweep` in lab/measured/README.md), whose host had no other work."""
ADAM_LISTS_MIN: Final = 5
"""Older traces do not say how many tensors a list has. A script's own optimizer with fewer list operations than this
then costs the host as much as SGD."""


class Issued(msgspec.Struct, frozen=True):
    """A step as the host issues it."""

    order: list[tuple[int, int]]
    """For each operation: its index in the trace, and its group."""
    groups: list[Weights]
    ending: Weights
    """Costs of each list operation of the optimizer, if the optimizer is not in the trace."""


def issued(
    scene: Scene,
    optimizer: str,
    lists: int,
    *,
    generator: bool = False,
    context: bool = False,
    compiled: bool = False,
) -> Issued:
    """`lists` is the number of list operations of the optimizer."""
    steps = list(_phases(scene))
    tensors = [each.tensors for each in scene.works]
    keys = sorted({(phase, kind, tensors[index]) for index, phase, kind in steps})
    at = {key: index for index, key in enumerate(keys)}
    trains = scene.trace.has_backward
    trained = sum(each.trainable for each in scene.trace.parameters) if trains else 0
    counts = Counter(phase for _, phase, _ in steps)
    again, segments = _recomputed(scene, steps)
    again = min(1.0, again * counts["forward"] / max(1, counts["backward"]))
    side = "forward" if trains else "infer"
    listed = sum(kind in LISTED for _, _, kind in steps)
    groups = []
    for phase, kind, listed_tensors in keys:
        weights: Weights = {f"{side}_view": scene.trace.views / len(steps)}
        by_python = {"forward": 1.0, "backward": again}.get(phase, 0.0)
        if kind == "nothing":
            weights["nothing"] = 1.0
        elif kind == RECURRENT:
            weights |= {CELL: float(listed_tensors), f"{side}_operation": 1.0}
        elif listed_tensors:
            weights |= {LIST: float(listed_tensors), "infer_operation": 1.0}
            weights |= {CORRECTION: float(listed_tensors)} if kind == CORRECTED else {}
        elif phase == "plain" and not compiled:
            weights[f"infer_{kind}"] = 1.0
        elif phase == "optimizer":
            own = "adam" if listed >= ADAM_LISTS_MIN else "sgd"
            weights |= {own: trained / listed} if kind in LISTED else {f"infer_{kind}": 1.0}
        elif kind == UNPACK and not compiled:
            weights |= {UNPACK: 1.0, f"{side}_operation": by_python, "backward_operation": 1 - by_python}
        elif compiled:
            weights["compiled_fused" if kind == FUSED else "compiled_library"] = 1.0
        else:
            weights |= {f"{side}_{kind}": by_python, f"backward_{kind}": 1 - by_python}
        if compiled and phase == "backward":
            weights["compiled_parameter"] = trained / counts[phase]
        elif phase == "backward":
            weights |= {"gradient": trained / counts[phase], "segment": segments / counts[phase]}
        if generator and phase == "forward":
            weights["generator" if trains else "generator_infer"] = 1.0
        if context:
            weights["context"] = by_python * (1 + scene.trace.views / len(steps))
        groups.append({name: weight for name, weight in weights.items() if weight})
    return Issued(
        [(index, at[phase, kind, tensors[index]]) for index, phase, kind in steps],
        groups,
        _ending(optimizer, trained / lists, context=context) if lists else {},
    )


def _ending(optimizer: str, parameters: float, *, context: bool) -> Weights:
    kind = {"sgd": "sgd", "adam": "adam"}.get(optimizer, "adam" if "adamw" in optimizer else None)
    if kind is None:
        return {}
    return {kind: parameters, "context_parameter": parameters if context and kind == "adam" else 0.0}


def seconds_of(weights: Mapping[str, float], host: Mapping[str, float]) -> float:
    return sum(weight * host.get(kind, 0.0) for kind, weight in weights.items())


def divided(
    works: Sequence[Work], order: Sequence[tuple[int, int]], pairs: Sequence[tuple[float, float]]
) -> list[list[tuple[float, float]]]:
    """The host's and the GPU's seconds of each operation, in parts between which the host waits for the GPU. A copy
    takes the host's time."""
    parts: list[list[tuple[float, float]]] = [[]]
    for (index, _), pair in zip(order, pairs, strict=True):
        parts[-1].append(pair)
        if works[index].name in WAITS:
            waits, is_pinned = works[index].dims
            if waits:
                parts.append([])
            parts[-1].append((works[index].bytes / (PINNED if is_pinned else PAGEABLE), 0.0))
    return parts


PAGEABLE: Final = 8e9
PINNED: Final = 50e9
"""Bytes per second between host and GPU, from ordinary memory and from pinned memory."""


class Timelines:
    """The timelines of host and GPU: the step's time when each is slower by a factor.

    The GPU ends after the last operation that it had to wait for was issued, plus the time of that operation and all
    later ones. Which operation that is depends on both factors. Only a few can be it: the corners of a convex hull.
    """

    def __init__(self, pairs: Sequence[tuple[float, float]]) -> None:
        """`pairs` has, for each operation, the host's seconds to issue it and the GPU's seconds to run it."""
        rest = sum(gpu for _, gpu in pairs)
        self.gpu_seconds = rest
        issued = 0.0
        points: list[tuple[float, float]] = []
        for host, gpu in pairs:
            issued += host
            if gpu:  # without GPU time the next point is above this one
                _add_corner(points, rest, issued)
                rest -= gpu
        _add_corner(points, 0.0, issued)
        self.host_seconds = issued
        self._points = points

    def seconds(self, factor: float, pace: float = 1.0) -> float:
        """The GPU takes `factor` times as long, the host `pace` times."""
        return max(pace * issued + factor * rest for rest, issued in self._points)


def _add_corner(points: list[tuple[float, float]], rest: float, issued: float) -> None:
    """Keep the upper convex hull. From point to point `rest` never increases and `issued` never decreases."""
    while points and points[-1][0] <= rest:
        points.pop()
    while len(points) > 1:
        (x0, y0), (x1, y1) = points[-2:]
        if (y1 - y0) * (x1 - rest) > (issued - y1) * (x0 - x1):
            break
        points.pop()
    points.append((rest, issued))


def _phases(scene: Scene) -> Iterator[tuple[int, str, str]]:
    """Index, phase and kind of each operation of the step."""
    kinds = [
        RECURRENT if each.family == RECURRENT else _kind(each.name, kernel=each.kernel)
        for each in scene.works
    ]
    phase = "forward"
    for event in scene.step:
        kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
        if kind == OPERATE:
            yield argument, phase, kinds[argument]
        elif kind == MARK:
            phase = {BACKWARD: "backward", OPTIMIZER: "optimizer", PLAIN: "plain"}.get(argument, "forward")


def _kind(name: str, *, kernel: bool) -> str:
    if not kernel:
        return "nothing"
    if name.startswith(LISTS):
        return name if name == CORRECTED else "list"
    if name == FUSED:
        return FUSED
    if name == UNPACKS:
        return UNPACK
    if name.startswith("convolution"):
        return "convolution"
    return "cast" if name == "_to_copy" else "operation"


def _recomputed(scene: Scene, steps: Sequence[tuple[int, str, str]]) -> tuple[float, int]:
    """The share of the forward pass that runs again in the backward pass, and in how many parts.

    Detected by operations that have a counterpart in the backward pass: without checkpointing none of them runs there.
    """
    forward = Counter(scene.works[index].name for index, phase, _ in steps if phase == "forward")
    backward = [scene.works[index].name for index, phase, _ in steps if phase == "backward"]
    counterparts = {f"{name}_backward": name for name in forward}
    paired = {counterparts[name] for name in set(backward) & counterparts.keys()}
    segments, computing = 0, False
    for name in backward:
        if name in paired and not computing:
            segments, computing = segments + 1, True
        elif counterparts.get(name) in paired:
            computing = False
    total = sum(forward[name] for name in paired)
    return sum(name in paired for name in backward) / max(1, total), segments
