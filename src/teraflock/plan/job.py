"""A job as the planner sees it: how long it takes on the GPUs of an offer, or why it does not run there.

`--batch` counts the samples on each GPU, as in `tera estimate`: with more GPUs a step sees more samples, and the job
takes fewer steps. What fits is decided on each card, never by the sum of cards, unless the job shards. Hosts share
their cores with others, as most rented ones do; those of own servers do not.

Beyond two GPUs memory is that of two, and time changes only by what the GPUs tell each other: over the links of one
machine, or over the network between several.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.base.quantities import memory_text
from teraflock.catalog.cards import all_cards, cards_by_id
from teraflock.catalog.model import Card
from teraflock.estimate.cards import refuses
from teraflock.estimate.parallel import step_seconds
from teraflock.estimate.step import OWN, SHARED, Seconds
from teraflock.estimate.survey import Survey
from teraflock.offer.model import Shape
from teraflock.plan.model import Hours, Misfit
from teraflock.workload.model import Workload

GPUS_MAX: Final = 8  # of one machine, data parallel: beyond it no estimate is made
NEARLY_BYTES: Final = 50_000_000  # less would be told as 0 GB
BYTES_PER_GIGABIT: Final = 125_000_000


class Job:
    """Callable with a shape and a number of machines: the hours of the whole job there, or why it does not run."""

    def __init__(
        self,
        workload: Workload,
        *,
        steps: float | None,
        samples: float | None,
        network_gbps: float = 10.0,
        sharded: bool = False,
    ) -> None:
        self._workload = workload
        self._steps = steps
        self._samples = samples
        self._sharded = sharded
        self._network = network_gbps * BYTES_PER_GIGABIT
        self._judged: dict[tuple[str, int, int, str], Hours | Misfit] = {}
        self._alone: dict[tuple[str, str], Seconds | None] = {}

    def __call__(self, shape: Shape, instances: int = 1) -> Hours | Misfit:
        card = cards_by_id().get(shape.gpu)
        gpus = shape.gpu_count or 0
        if card is None:
            return Misfit("no_estimate", "no estimate can be made for its kind of chip")
        if shape.gpu_share != 1:
            return Misfit("slice", "a part of a card, for which no estimate is made")
        if gpus > GPUS_MAX:
            return Misfit("too_many_to_estimate", f"has {gpus} GPUs; estimates go up to {GPUS_MAX}")
        host = OWN if shape.mode == "owned" else SHARED
        key = (card.id, gpus, instances, host)
        if key not in self._judged:
            self._judged[key] = self._on(card, gpus * instances, host, apart=instances > 1)
        return self._judged[key]

    def advice(self) -> Iterator[str]:
        """What would make the job fit on the largest card there is."""
        from teraflock.estimate.advice import advice
        from teraflock.estimate.answer import answer
        from teraflock.estimate.model import Question

        largest = max(all_cards(), key=lambda card: card.memory_bytes if card.cuda else 0)
        estimate = answer(self._workload, Question(cards=[largest]))
        yield from advice(estimate, estimate.gpus[0].memory_bytes)

    def _on(self, card: Card, gpus: int, host: str, *, apart: bool) -> Hours | Misfit:
        if refused := refuses(card, self._workload.precision):
            return Misfit("precision", refused)
        survey = self._survey
        fit = survey.fit(card, gpus)
        if not fit.fits:
            return Misfit("does_not_fit", _missing(fit.missing_bytes), fit.missing_bytes)
        alone = self._seconds_alone(card, host)
        if alone is None:
            return Misfit("no_time", "how long a step takes there cannot be told")
        return self._hours(alone, card, gpus, apart=apart)

    def _seconds_alone(self, card: Card, host: str) -> Seconds | None:
        key = (card.id, host)
        if key not in self._alone:
            self._alone[key] = self._survey.seconds(card, host)
        return self._alone[key]

    def _hours(self, alone: Seconds, card: Card, gpus: int, *, apart: bool) -> Hours:
        survey = self._survey
        slower = 1.0
        if gpus > 1:
            network = self._network if apart else None
            together = step_seconds(
                alone.p50, survey.exchanged_bytes, card, gpus, network_bytes_per_second=network
            )
            slower = together / alone.p50
        steps = self._steps
        if steps is None:
            steps = (self._samples or 0) / (self._batch * gpus)
        return Hours(*(each * slower * steps / 3600 for each in (alone.p10, alone.p50, alone.p90)))

    @cached_property
    def _batch(self) -> int:
        batch = self._survey.workload.batch
        if not batch:
            raise BadInput(
                "This trace does not tell how many samples a step holds",
                hint="Say `--steps` in place of `--epochs` and `--samples`",
            )
        return batch

    @cached_property
    def _survey(self) -> Survey:
        return Survey(self._workload, all_cards(), sharded=self._sharded)


def _missing(missing_bytes: int) -> str:
    if missing_bytes < NEARLY_BYTES:
        return "does not fit, if only just"  # enough memory in all, but in pieces too small
    return f"does not fit by {memory_text(missing_bytes)}"
