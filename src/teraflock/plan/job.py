"""A job as the planner sees it: the estimator asked once for each number of GPUs, for all cards at a time.

`--batch` counts the samples on each GPU, as in `tera estimate`: with more GPUs a step sees more samples, and the job
takes fewer steps. What fits is decided on each card, never by the sum of cards.
"""

from functools import cache

from teraflock.base.quantities import memory_text
from teraflock.catalog.cards import all_cards, cards_by_id
from teraflock.estimate.answer import OnGpu, Question, answer
from teraflock.estimate.cards import refuses
from teraflock.offer.model import Shape
from teraflock.plan.model import Hours, Misfit
from teraflock.workload.model import Workload

GPUS_MAX = 8  # one machine, data parallel: beyond it no estimate is made


class Job:
    """Callable with a shape: how many hours the whole job takes there, or why it does not run."""

    def __init__(self, workload: Workload, *, steps: float | None, samples: float | None) -> None:
        self._workload = workload
        self._steps = steps
        self._samples = samples
        self._on = cache(self._rows)

    def __call__(self, shape: Shape) -> Hours | Misfit:
        card = cards_by_id().get(shape.gpu)
        gpus = shape.gpu_count or 0
        if card is None:
            return Misfit("no_estimate", "no estimate can be made for its kind of chip")
        if shape.gpu_share != 1:
            return Misfit("slice", "a part of a card, for which no estimate is made")
        if gpus > GPUS_MAX:
            return Misfit("too_many_to_estimate", f"has {gpus} GPUs; estimates go up to {GPUS_MAX}")
        if refused := refuses(card, self._workload.precision):
            return Misfit("precision", refused[:1].lower() + refused[1:])
        row = self._on(gpus).get(card.id)
        return _judged(row) if row else Misfit("no_estimate", "no estimate can be made for it")

    def _rows(self, gpus: int) -> dict[str, OnGpu]:
        question = Question(cards=all_cards(), gpus=gpus, steps=self._steps, samples=self._samples)
        return {row.gpu: row for row in answer(self._workload, question).gpus}


def _judged(row: OnGpu) -> Hours | Misfit:
    if not row.fits:
        missing = max(0, row.need_bytes - row.memory_bytes)
        return Misfit("does_not_fit", f"does not fit by {memory_text(missing)}", missing)
    if row.hours is None:
        return Misfit("no_time", "how long a step takes there cannot be told")
    return Hours(row.hours.p10, row.hours.p50, row.hours.p90)
