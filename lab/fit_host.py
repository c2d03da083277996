"""Fits what the host spends per operation: constants by which the replay of two timelines meets measured steps.

Least squares of logarithms, outliers counted less, every constant a positive number that starts from a plain guess and
is held near it as far as nothing measured speaks against it. First the costs of an undisturbed host, on steps measured
for that; then, on ordinary steps, how many times as long a host takes.
"""

from collections.abc import Mapping, Sequence
from copy import copy

import numpy as np
import numpy.typing as npt

from lab.evidence import IN_CONTEXT, Run
from teraflock.estimate.host import issued
from teraflock.estimate.speed import Measured, mean_nearness, seconds_h200, timed_h200
from teraflock.estimate.step import SERIAL, matrix_seconds, optimizer_works
from teraflock.workload.zoo import ENTRIES

GUESS = {
    "infer_operation": 2e-5, "infer_convolution": 2.5e-5, "infer_cast": 1e-5, "infer_view": 3e-6, "nothing": 3e-6,
    "forward_operation": 2e-5, "forward_convolution": 4e-5, "forward_cast": 1e-5, "forward_view": 5e-6,
    "backward_operation": 2e-5, "backward_convolution": 4e-5, "backward_cast": 1e-5,
    "gradient": 5e-6, "sgd": 1e-5, "adam": 3e-5, "segment": 1e-3, "generator": 1e-5, "generator_infer": 1e-5,
    "context": 2e-6, "context_parameter": 1e-5, "start_infer": 1e-4, "start_forward": 2e-4, "serial": 2.8e-4,
}  # fmt: skip
KINDS = list(GUESS)
PACES = {"infer": 1.3, "train": 1.3, "context": 2e-6, "context_parameter": 1e-5}
"""Guesses likewise: of the pace by task, and of what `with torch.device(…)` adds."""
DOUBT = 0.8
"""Of a guess, as a logarithm."""
NOISE = 0.1
"""Of a measured step, likewise."""
HUBER = 0.12
TURNS_MAX = 40

Array = npt.NDArray[np.float64]


class Replay:
    """One run, laid out so that its time for any constants is one product: costs up to each operation, GPU after it."""

    def __init__(self, run: Run, known: Measured) -> None:
        scene, optimizer = run.scene, run.job["optimizer"]
        lists = optimizer_works(optimizer, scene) if scene.trace.has_backward else []
        is_generator = ENTRIES[run.job["model"]].kind == "generator"
        step = issued(scene, optimizer, len(lists), generator=is_generator, context=run.file in IN_CONTEXT)
        timed = [
            timed_h200(each, known, run.precision) if each.kernel else (0.0, 0.0) for each in scene.works
        ]
        gpu = [timed[index][0] for index, _ in step.order]
        self.nearness = mean_nearness(timed[index] for index, _ in step.order)
        gpu += [seconds_h200(each, known, run.precision) for each in lists]
        rows = [_vector(each) for each in step.groups]
        costs = [rows[group] for _, group in step.order] + [_vector(step.ending)] * len(lists)
        start = _vector({"start_forward" if scene.trace.has_backward else "start_infer": 1.0})
        self.gpu_seconds = sum(gpu)
        done = np.concatenate([[0.0], np.cumsum(gpu)])
        self.rest = done[-1] - done
        self.costs = start + np.cumsum(np.array([*costs, np.zeros(len(KINDS))]), axis=0)
        self.after, self.wait = 0.0, np.zeros(len(KINDS))
        if optimizer in SERIAL:
            shapes = [shape for shape, _ in scene.parameter_sizes()]
            self.after = matrix_seconds(shapes, known.matrix)
            in_context = len(shapes) if run.file in IN_CONTEXT else 0
            self.wait = _vector({"serial": float(len(shapes)), "context_parameter": float(in_context)})
        self.seconds = run.seconds
        self.task = run.job["task"]

    def paced(self, constants: Array) -> "Replay":
        """The same, as a product of the paces instead: these costs are those of an undisturbed host."""
        plain = np.array(
            [0.0 if kind in PACES else each for kind, each in zip(KINDS, constants, strict=True)]
        )
        made = copy(self)
        made.costs, made.wait = (self._by_pace(each, plain) for each in (self.costs, self.wait))
        return made

    def _by_pace(self, costs: Array, plain: Array) -> Array:
        own = costs @ plain
        columns = [own if kind == self.task else np.zeros_like(own) for kind in ("infer", "train")]
        return np.stack([*columns, *(costs[..., KINDS.index(each)] for each in list(PACES)[2:])], axis=-1)

    def predicted(self, constants: Array) -> tuple[float, Array]:
        """Seconds, and how they change with each constant."""
        ends = self.costs @ constants + self.rest
        last = int(np.argmax(ends))
        slope = self.costs[last] + self.wait
        return float(ends[last] + self.wait @ constants + self.after), slope


def _vector(weights: dict[str, float]) -> Array:
    return np.array([weights.get(kind, 0.0) for kind in KINDS])


def fit_host(replays: Sequence[Replay], guesses: Mapping[str, float] = GUESS) -> Array:
    """The constants, one by one as the guesses are: Levenberg and Marquardt's way on their logarithms."""
    guess = np.log(list(guesses.values()))
    at, damping = guess.copy(), 1e-2
    errors, slopes = _residuals(replays, at)
    cost = _cost(errors, at - guess)
    for _ in range(TURNS_MAX):
        weight = np.minimum(1, HUBER / np.maximum(np.abs(errors), 1e-9)) / NOISE**2
        curvature = (slopes * weight[:, None]).T @ slopes + np.eye(len(at)) / DOUBT**2
        gradient = (slopes * weight[:, None]).T @ errors + (at - guess) / DOUBT**2
        while damping < 1e8:
            move = -np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), gradient)
            there = at + np.clip(move, -1, 1)
            errors_there, slopes_there = _residuals(replays, there)
            cost_there = _cost(errors_there, there - guess)
            if cost_there < cost:
                break
            damping *= 4
        else:
            break
        is_done = cost - cost_there < 1e-5 * cost
        at, errors, slopes, cost, damping = there, errors_there, slopes_there, cost_there, damping / 5
        if is_done:
            break
    return np.exp(at)


def _residuals(replays: Sequence[Replay], logarithms: Array) -> tuple[Array, Array]:
    constants = np.exp(logarithms)
    errors, slopes = np.zeros(len(replays)), np.zeros((len(replays), len(constants)))
    for index, each in enumerate(replays):
        seconds, slope = each.predicted(constants)
        errors[index] = np.log(seconds / each.seconds)
        slopes[index] = slope * constants / seconds
    return errors, slopes


def _cost(errors: Array, moved: Array) -> float:
    size = np.abs(errors)
    each = np.where(size < HUBER, size**2 / 2, HUBER * (size - HUBER / 2))
    return float(np.sum(each) / NOISE**2 + np.sum((moved / DOUBT) ** 2) / 2)
