"""One workload on many cards, asked card by card: whether it fits there, and how long a step takes.

What a plan needs and no more: no largest batches, no timeline, and for any number of GPUs the work of one question.
What holds: it says of each card what `answer` says of it among the same cards.
"""

from collections.abc import Sequence
from functools import cached_property

import msgspec

from teraflock.catalog.model import Card
from teraflock.estimate.answer import (
    Estimator,
    finder_for,
    need_bytes,
    reference_bytes,
    seconds_on,
    step_of,
)
from teraflock.estimate.batch import LIMIT_SHARE, BatchFinder
from teraflock.estimate.cards import reservable_bytes
from teraflock.estimate.step import Seconds, StepWork
from teraflock.workload.model import Workload


class Fit(msgspec.Struct, frozen=True):
    fits: bool
    missing_bytes: int
    """By how much it does not fit; 0 where it does, or misses by what the allocator loses in gaps."""


class Survey:
    def __init__(self, workload: Workload, cards: Sequence[Card]) -> None:
        self.estimator = Estimator(workload)
        self.workload = self.estimator.workload
        self._reference = reference_bytes(cards, self.workload.precision)
        self._finders: dict[bool, tuple[BatchFinder | None, int]] = {}

    def fit(self, card: Card, *, shared: bool) -> Fit:
        """On one GPU, or on each of several that share the work: those keep their gradients a second time."""
        finder, need = self._finder(shared)
        room = reservable_bytes(card)
        if finder is None:
            fits = need <= LIMIT_SHARE * room
        else:
            fits = finder.largest_near(room, self._reference) >= self.workload.batch
        return Fit(fits, 0 if fits else max(0, need - room))

    def seconds(self, card: Card) -> Seconds | None:
        """One step on one GPU."""
        return seconds_on(self.estimator, self._step, card)

    @cached_property
    def gradient_bytes(self) -> int:
        return self.estimator.gradient_bytes()

    @cached_property
    def _step(self) -> StepWork:
        return step_of(self.estimator, self.estimator.scene())

    def _finder(self, shared: bool) -> tuple[BatchFinder | None, int]:
        if shared not in self._finders:
            finder = finder_for(self.estimator, self.gradient_bytes if shared else 0)
            self._finders[shared] = finder, need_bytes(self.estimator, finder)
        return self._finders[shared]
