"""A job as the planner sees it: how long it takes on the GPUs of an offer, or why it does not run there.

`--batch` counts the samples on each GPU, as in `tera estimate`: with more GPUs a step sees more samples, and the job
takes fewer steps. A global batch is split among the GPUs instead: a step is the same work on any number of them. What
fits is decided on each card, never by the sum of cards, unless the job shards. Hosts share their cores with others, as
most rented ones do; those of own servers do not.

Beyond two GPUs memory is that of two, and time changes only by what the GPUs tell each other: over the links of one
machine, or over the network between several.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.base.quantities import memory_text
from teraflock.catalog.cards import all_cards, all_slices, cards_by_id
from teraflock.catalog.model import Card
from teraflock.estimate.cards import refuses, unsupported
from teraflock.estimate.derived import sliced
from teraflock.estimate.model import GPUS_MAX
from teraflock.estimate.parallel import step_seconds
from teraflock.estimate.step import OWN, SHARED, Seconds
from teraflock.estimate.survey import Survey
from teraflock.offer.model import Shape
from teraflock.plan.model import Hours, Misfit
from teraflock.workload.model import Workload

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
        network: Callable[[str], float] | None = None,
        stage: int = 0,
        offload: bool = False,
        global_batch: int | None = None,
        tensor_parallel: int = 1,
    ) -> None:
        """`network` gives the Gbit/s between machines of an instance type; else all have `network_gbps`. `stage` of
        ZeRO: see `Survey`. `tensor_parallel` GPUs of a machine run each batch together."""
        self._workload = workload
        self._global_batch = global_batch
        self._steps = steps
        self._samples = samples
        self._stage = stage
        self._ways = tensor_parallel
        self._offload = offload
        self._network = network or (lambda instance_type: network_gbps)
        self._judged: dict[tuple[str, int, int, str, float], Hours | Misfit] = {}
        self._alone: dict[tuple[str, str, int], Seconds | None] = {}
        self._surveys: dict[int, Survey] = {}
        if tensor_parallel > 1:
            self._survey(1)  # refuses what cannot be divided before any offer is looked at

    def __call__(self, shape: Shape, instances: int = 1) -> Hours | Misfit:
        card = cards_by_id().get(shape.gpu)
        gpus = shape.gpu_count or 0
        if card is None:
            return Misfit("no_estimate", "no estimate can be made for its kind of chip")
        if shape.gpu_share != 1:
            part = _slice_of(card, shape)
            if part is None:
                return Misfit("slice", "a part of a card, for which no estimate is made")
            card = part
        if gpus > GPUS_MAX:
            return Misfit("too_many_to_estimate", f"has {gpus} GPUs; estimates go up to {GPUS_MAX}")
        if gpus % self._ways or (self._ways > 1 and shape.gpu_share != 1):
            return Misfit("tensor_parallel", f"its GPUs do not form groups of {self._ways} in one machine")
        host = OWN if shape.mode == "owned" else SHARED
        gbps = self._network(shape.instance_type) if instances > 1 else 0.0
        key = (card.id, gpus, instances, host, gbps)
        if key not in self._judged:
            self._judged[key] = self._on(card, gpus // self._ways * instances, host, gbps)
        return self._judged[key]

    def advice(self) -> Iterator[str]:
        """What would make the job fit on the largest card there is."""
        from teraflock.estimate.advice import advice
        from teraflock.estimate.answer import answer
        from teraflock.estimate.model import Question

        largest = max(all_cards(), key=lambda card: card.memory_bytes if card.cuda else 0)
        estimate = answer(self._workload, Question(cards=[largest]))
        yield from advice(estimate, estimate.gpus[0].memory_bytes)

    def _on(self, card: Card, gpus: int, host: str, gbps: float) -> Hours | Misfit:
        """On so many GPUs, or groups of GPUs under tensor parallelism: each has a batch of its own."""
        if why := unsupported(card):
            return Misfit("no_estimate", why)
        if refused := refuses(card, self._workload.precision):
            return Misfit("precision", refused)
        fit = self._survey(gpus).fit(card, gpus)
        if not fit.fits:
            return Misfit("does_not_fit", _missing(fit.missing_bytes), fit.missing_bytes)
        alone = self._seconds_alone(card, host, gpus)
        if alone is None:
            return Misfit("no_time", "how long a step takes there cannot be told")
        return self._hours(alone, card, gpus, gbps)

    def _seconds_alone(self, card: Card, host: str, gpus: int) -> Seconds | None:
        survey = self._survey(gpus)
        key = (card.id, host, survey.workload.batch)
        if key not in self._alone:
            self._alone[key] = survey.seconds(card, host)
        return self._alone[key]

    def _hours(self, alone: Seconds, card: Card, gpus: int, gbps: float) -> Hours:
        survey = self._survey(gpus)
        slower = 1.0
        if gpus > 1:
            network = gbps * BYTES_PER_GIGABIT or None
            together = step_seconds(
                alone.p50, survey.exchanged_bytes, card, gpus, network_bytes_per_second=network
            )
            slower = together / alone.p50
        slower += survey.offload_seconds(card, gpus) / alone.p50
        steps = self._steps
        if steps is None:
            steps = (self._samples or 0) / (self._global_batch or self._batch * gpus)
        return Hours(*(each * slower * steps / 3600 for each in (alone.p10, alone.p50, alone.p90)))

    @cached_property
    def _batch(self) -> int:
        batch = self._survey(1).workload.batch
        if not batch:
            raise BadInput(
                "This trace does not tell how many samples a step holds",
                hint="Say `--steps` in place of `--epochs` and `--samples`",
            )
        return batch

    def _survey(self, gpus: int) -> Survey:
        """Of the batch that each of so many GPUs has."""
        batch = -(-self._global_batch // gpus) if self._global_batch else self._workload.batch
        if batch not in self._surveys:
            workload = replace(self._workload, batch=batch)
            self._surveys[batch] = Survey(
                workload,
                all_cards(),
                stage=self._stage,
                offload=self._offload,
                tensor_parallel=self._ways,
            )
        return self._surveys[batch]


def _slice_of(card: Card, shape: Shape) -> Card | None:
    """The MIG slice that an offer sells; None for a part that its maker cuts otherwise."""
    for part in all_slices():
        whole = (part.family, part.card_memory_gb) == (card.family, card.memory_gb)
        if (
            whole
            and abs(part.share - shape.gpu_share) < SHARE_APART
            and part.memory_bytes == shape.gpu_memory_bytes
        ):
            return sliced(card, part)
    return None


SHARE_APART: Final = 0.005


def _missing(missing_bytes: int) -> str:
    if missing_bytes < NEARLY_BYTES:
        return "does not fit, if only just"  # enough memory in all, but in pieces too small
    return f"does not fit by {memory_text(missing_bytes)}"
