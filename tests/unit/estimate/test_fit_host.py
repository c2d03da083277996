"""What the fit of the host finds where the answer is known: steps made up from costs, and hosts made slower."""

import random

import numpy as np
import pytest
from lab.evidence import Run, scene_of, undisturbed_seconds
from lab.fit_host import GUESS, KINDS, PACES, Replay, fit_host
from lab.probe import SHARED_MICROSECONDS, UNDISTURBED_MICROSECONDS, probe
from lab.ways import LARGE, TEXT, WAYS

from teraflock.estimate.speed import measured

MODELS = ("resnet18", "squeezenet1_0", "distilbert", "gpt2")
COSTS = np.array([1.7 * each for each in GUESS.values()])
"""Far from the guesses the fit starts at."""


def job(model: str, way: tuple[str, str, str, int, int]) -> dict[str, object]:
    task, precision, optimizer, ckpt, lora = way
    text = model in ("distilbert", "gpt2")
    return {
        "model": model, "task": task, "batch": 1, "seq": 32 if text else None, "precision": precision,
        "optimizer": optimizer, "ckpt": ckpt, "lora": lora, "px": None,
    }  # fmt: skip


def replays() -> list[Replay]:
    ways = [(model, way) for model in MODELS for way in WAYS]
    found = [job(model, way) for model, way in ways] + [job("gpt2", way) for way in TEXT]
    return [
        Replay(Run("fit_host", {"job": each, "median": 1.0}, scene_of(each)), measured()) for each in found
    ]


def test_costs_that_made_the_steps_are_found_again() -> None:
    chance, steps = random.Random(5), replays()
    for each in steps:
        each.seconds = each.predicted(COSTS)[0] * chance.gauss(1, 0.01)
    found = fit_host(steps)
    off = [each.predicted(found)[0] / each.seconds - 1 for each in steps]
    assert np.quantile(np.abs(off), 0.9) < 0.05
    # those that fall on every step are told apart, not only their sum
    for kind in ("infer_operation", "forward_operation", "adam", "serial", "segment"):
        at = KINDS.index(kind)
        assert found[at] == pytest.approx(COSTS[at], rel=0.35), kind


def test_a_slower_host_is_found_as_its_pace_and_changes_no_cost() -> None:
    steps = [each.paced(COSTS) for each in replays()]
    truth = np.array([1.9, 1.3, PACES["context"], PACES["context_parameter"]])
    for each in steps:
        each.seconds = each.predicted(truth)[0]
    infer, train, *_ = fit_host(steps, PACES)
    assert infer == pytest.approx(1.9, rel=0.05)
    assert train == pytest.approx(1.3, rel=0.05)


@pytest.mark.parametrize("task", ["infer", "train"])
def test_steps_beside_a_slow_probe_do_not_count(task: str) -> None:
    quick = [(1000.0 + at, 125.0) for at in range(30)]
    slow = [(1800.0 + at, 250.0) for at in range(200)]
    row = {"job": {"task": task}, "steps": quick + slow}
    assert undisturbed_seconds(row) == pytest.approx(1.01e-3, rel=0.02)
    # a host that was never left alone is taken back to one by what the probe took, or by its quickest steps
    assert undisturbed_seconds({"job": {"task": task}, "steps": slow}) < 1.9e-3


def test_the_probe_takes_a_time_between_nothing_and_a_tenth_of_a_second() -> None:
    assert 0 < probe() < 1e5
    assert UNDISTURBED_MICROSECONDS < SHARED_MICROSECONDS


def test_every_way_of_the_host_is_asked_once() -> None:
    every = [*WAYS, *TEXT, *LARGE]
    assert len(set(every)) == len(every)
