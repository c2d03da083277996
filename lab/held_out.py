"""Whole steps as they are predicted by what never saw them, or never saw their model."""

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import NamedTuple

import msgspec
import numpy as np

from lab.evidence import Run
from lab.fit_curves import Placed, fit_curves
from lab.fit_host import PACES, Array, Replay, fit_host
from teraflock.estimate.speed import Measured
from teraflock.estimate.step import HOSTED_SHARE

FOLDS = 8


class Evidence(NamedTuple):
    rows: Sequence[Placed]
    host: Sequence[Run]
    ordinary: Sequence[Run]
    matrix: list[float]

    def known(self, out: Collection[int] = ()) -> Measured:
        """The curves without some runs."""
        rows = [each for each in self.rows if id(each.row.run) not in out] if out else self.rows
        return msgspec.structs.replace(fit_curves(rows), matrix=self.matrix)


class Fitted:
    """The host's costs and paces, from such runs as it is given; beside the curves it is told."""

    def __init__(self, known: Measured, host: Sequence[Replay], ordinary: Sequence[Replay]) -> None:
        self.known, self.host, self.ordinary = known, host, ordinary
        self.constants = fit_host(host)
        self.paces = fit_host([each.paced(self.constants) for each in ordinary], PACES)

    def replay(self, run: Run) -> Replay:
        return Replay(run, self.known).paced(self.constants)

    def pace(self, task: str) -> float:
        return float(self.paces[list(PACES).index(task)])

    def own_pace(self, run: Run, replay: Replay) -> float:
        """At which it would have been met exactly."""
        low, high = PACE_RANGE
        at = list(PACES).index(run.job["task"])
        for _ in range(PACE_TURNS):
            middle = (low * high) ** 0.5
            paces = self.paces.copy()
            paces[at] = middle
            low, high = (middle, high) if replay.predicted(paces)[0] < run.seconds else (low, middle)
        return low


PACE_RANGE = (0.3, 8.0)
PACE_TURNS = 20
BUSY_SHARE = 0.95
"""Where the GPU is busy for more of a step than this, however slow the host is, it decides."""


class Told:
    """A run as it was predicted by what never saw it."""

    def __init__(self, run: Run, fitted: Fitted) -> None:
        replay = fitted.replay(run)
        self.run, self.replay, self.paces = run, replay, fitted.paces
        self.seconds, _ = replay.predicted(fitted.paces)
        self.residual = float(np.log(run.seconds / self.seconds))
        self.gpu_seconds = replay.gpu_seconds + replay.after
        self.pace = fitted.own_pace(run, replay) / fitted.pace(run.job["task"])
        """Over the usual one."""

    @property
    def is_hosted(self) -> bool:
        return bool(self.gpu_seconds < HOSTED_SHARE * self.seconds)

    def is_busy(self, slow: float) -> bool:
        return bool(self.gpu_seconds > BUSY_SHARE * self._at(slow, 0.0))

    def covers(self, paces: Array, gpu: Array) -> bool:
        low, high = (self._at(pace, residual) for pace, residual in zip(paces, gpu, strict=True))
        return low <= self.run.seconds <= high

    def _at(self, pace: float, residual: float) -> float:
        there = copy(self.replay)
        there.rest, there.after = self.replay.rest * np.exp(residual), self.replay.after * np.exp(residual)
        return there.predicted(self.paces * [pace, pace, 1, 1])[0]


def told_twice(evidence: Evidence, fitted: Fitted) -> Iterator[Told]:
    """Each run by what never saw its model, and by what never saw itself."""
    runs = evidence.ordinary
    for folds in (folds_of_models(runs), [index % FOLDS for index in range(len(runs))]):
        yield from _held_out(evidence, fitted, folds)


def folds_of_models(runs: Sequence[Run]) -> list[int]:
    """The same for the same models."""
    models = sorted({run.job["model"] for run in runs})
    return [models.index(run.job["model"]) % FOLDS for run in runs]


def _held_out(evidence: Evidence, of_all: Fitted, folds: list[int]) -> Iterator[Told]:
    """Curves are fitted anew without each fold, costs and paces too; of the runs left these go by the time that the
    curves of all say, which differs by less than what four paces and twenty costs could notice."""
    for fold in range(FOLDS):
        out = {id(run) for run, its in zip(evidence.ordinary, folds, strict=True) if its == fold}
        models = {run.job["model"] for run in evidence.ordinary if id(run) not in out}
        fitted = Fitted(
            evidence.known(out),
            [
                each
                for each, run in zip(of_all.host, evidence.host, strict=True)
                if run.job["model"] in models
            ],
            [
                each
                for each, run in zip(of_all.ordinary, evidence.ordinary, strict=True)
                if id(run) not in out
            ],
        )
        yield from (Told(run, fitted) for run in evidence.ordinary if id(run) in out)
