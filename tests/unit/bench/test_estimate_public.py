"""Which pairs of cards the order of public steps is judged by."""

from typing import cast

from bench.estimate_public import StepEstimate, order
from lab.public import PublicStep

from teraflock.catalog.cards import card
from teraflock.estimate.step import StepWork
from teraflock.workload.model import Workload


def step(gpu: str, batch: int, seconds: float, estimate: float, *, source: str = "table") -> StepEstimate:
    workload = Workload(model="resnet50", batch=batch, precision="fp16", optimizer="sgd")
    return PublicStep(card(gpu), workload, source, seconds, cast(StepWork, None)), estimate


def test_different_batches_are_compared_by_the_time_per_sample() -> None:
    estimates = [step("T4", 32, 1.0, 1.1), step("A100-SXM4-40", 320, 2.0, 1.9)]
    assert order(estimates, same_batch=False) == (1, 1)
    assert order(estimates, same_batch=True) == (0, 0)
    wrong = [step("T4", 32, 1.0, 0.1), step("A100-SXM4-40", 320, 2.0, 1.9)]
    assert order(wrong, same_batch=False) == (0, 1)


def test_only_different_cards_of_one_table_that_are_more_than_a_tenth_apart_form_pairs() -> None:
    slow = step("T4", 32, 1.0, 1.0)
    assert order([slow, step("T4", 32, 0.5, 0.5)], same_batch=True) == (0, 0)
    assert order([slow, step("A100-SXM4-40", 32, 0.95, 0.5)], same_batch=True) == (0, 0)
    assert order([slow, step("A100-SXM4-40", 32, 0.5, 0.5, source="other")], same_batch=True) == (0, 0)
    assert order([slow, step("A100-SXM4-40", 32, 0.5, 0.5)], same_batch=True) == (1, 1)
