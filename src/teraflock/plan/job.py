"""Estimate how long a job takes on the GPUs of an offer, or say why it cannot run there.

`--batch` is per GPU, as in `tera estimate`: with more GPUs a step processes more samples, and the job takes fewer
steps. `--global-batch` is split among the GPUs, so a step is the same work on any number of them. Memory must fit on
each card; the memory of several cards is never added up unless the job shards. Rented hosts are assumed to share their
cores with other tenants, own hosts not.

More than two GPUs need as much memory each as two. Their time differs only in communication: over the links of one
machine, or over the network between several.
"""

from collections.abc import Callable, Container, Iterator
from functools import cache, cached_property
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.base.quantities import memory_text
from teraflock.catalog.cards import all_cards, cards_by_id, slices_of
from teraflock.catalog.model import Card
from teraflock.estimate.advice import advice
from teraflock.estimate.cards import refuses, unsupported
from teraflock.estimate.derived import sliced
from teraflock.estimate.memory import Memory
from teraflock.estimate.model import GPUS_MAX, Question
from teraflock.estimate.parallel import step_seconds
from teraflock.estimate.step import OWN, SHARED, Seconds
from teraflock.estimate.survey import Survey
from teraflock.offer.model import Shape
from teraflock.plan.model import Hours, Misfit
from teraflock.workload.model import Workload

NEARLY_BYTES: Final = 50_000_000  # less would be printed as 0 GB
BYTES_PER_GIGABIT: Final = 125_000_000
SHARE_APART: Final = 0.005


class Job:
    """Estimates a job. Call it with a shape and a number of machines to get the hours or a `Misfit`."""

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
        """`network` returns the Gbit/s between machines of an instance type; without it, all have `network_gbps`.
        `stage` is the ZeRO stage, see `Survey`. Groups of `tensor_parallel` GPUs of one machine share each batch."""
        self._workload = workload
        self._global_batch = global_batch
        self._steps = steps
        self._samples = samples
        self._stage = stage
        self._ways = tensor_parallel
        self._offload = offload
        self._network = cache(network or (lambda instance_type: network_gbps))
        self._judged: dict[tuple[str, int, int, str, float], Hours | Misfit] = {}
        self._alone: dict[tuple[str, str, int], Seconds | None] = {}
        self._surveys: dict[int, Survey] = {}
        if tensor_parallel > 1:
            self._survey(1)  # raises for a batch that cannot be divided, before any offer is examined

    def __call__(self, shape: Shape, instances: int = 1) -> Hours | Misfit:
        card = cards_by_id().get(shape.gpu)
        gpus = shape.gpu_count or 0
        if card is None:
            return Misfit("no_estimate", "estimates do not support this kind of chip")
        if shape.gpu_share != 1:
            part = _slice_of(card, shape)
            if part is None:
                return Misfit("slice", "a part of a card, which estimates do not support")
            card = part
        if gpus > GPUS_MAX:
            return Misfit("too_many_to_estimate", f"has {gpus} GPUs; estimates support up to {GPUS_MAX}")
        groups = gpus // self._ways * instances
        if misfit := self._undivided(shape, gpus, groups):
            return misfit
        host = OWN if shape.mode == "owned" else SHARED
        gbps = self._network(shape.instance_type) if instances > 1 else 0.0
        key = (card.id, gpus, instances, host, gbps)
        if key not in self._judged:
            self._judged[key] = self._on(card, groups, host, gbps)
        return self._judged[key]

    def _undivided(self, shape: Shape, gpus: int, groups: int) -> Misfit | None:
        """Why the job cannot be divided among these GPUs. None: it can be."""
        if gpus % self._ways or (self._ways > 1 and shape.gpu_share != 1):
            return Misfit("tensor_parallel", f"its GPUs cannot form groups of {self._ways} in one machine")
        if self._global_batch and self._global_batch < groups:
            why = f"a global batch of {self._global_batch} cannot be divided among {groups} GPUs"
            return Misfit("batch_too_small", why)
        return None

    def advice(self, ids: Container[str]) -> Iterator[str]:
        """List changes that would make the job fit on the largest of these cards."""
        from teraflock.estimate.answer import answer

        tried = [card for card in all_cards() if card.cuda and card.id in ids]
        if not tried:
            return
        largest = max(tried, key=lambda card: card.memory_bytes)
        estimate = answer(self._workload, Question(cards=[largest]))
        yield from advice(estimate, estimate.gpus[0].memory_bytes)

    def _on(self, card: Card, gpus: int, host: str, gbps: float) -> Hours | Misfit:
        """Estimate `gpus` GPUs, or groups of GPUs with tensor parallelism. Each has its own batch."""
        if why := unsupported(card):
            return Misfit("no_estimate", why)
        survey = self._survey(gpus)
        if refused := refuses(card, survey.workload.precision):  # a trace says its own precision
            return Misfit("precision", refused)
        fit = survey.fit(card, gpus)
        if not fit.fits:
            return Misfit("does_not_fit", _missing(fit.missing_bytes), fit.missing_bytes)
        alone = self._seconds_alone(card, host, gpus)
        if alone is None:
            return Misfit("no_time", "its step time cannot be estimated")
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
            each_pass = self._global_batch or self._batch * gpus
            steps = (self._samples or 0) / (each_pass * self._workload.accumulate)
        return Hours(*(each * slower * steps / 3600 for each in (alone.p10, alone.p50, alone.p90)))

    @cached_property
    def _batch(self) -> int:
        batch = self._survey(1).workload.batch
        if not batch:
            raise BadInput(
                "The trace does not say how many samples a step has",
                hint="Use `--steps` instead of `--epochs` and `--samples`",
            )
        return batch

    def _survey(self, gpus: int) -> Survey:
        """Return the survey for the batch of each of `gpus` GPUs."""
        batch = -(-self._global_batch // gpus) if self._global_batch else self._workload.batch
        if batch not in self._surveys:
            workload = replace(self._workload, batch=batch)
            self._surveys[batch] = Survey(
                workload,
                stage=self._stage,
                offload=self._offload,
                tensor_parallel=self._ways,
            )
        return self._surveys[batch]

    def memory_over_step(self, gpus: int) -> Memory | None:
        """The memory in use on each of `gpus` GPUs during one step. None for sharded jobs, which divide it."""
        if self._stage or self._offload:
            return None
        return self._survey(gpus).estimator.memory(timeline=True)


def _slice_of(card: Card, shape: Shape) -> Card | None:
    """Return the MIG slice of an offer, or None if the part is not a known slice."""
    for part in slices_of(card):
        same_share = abs(part.share - shape.gpu_share) < SHARE_APART
        if same_share and part.memory_bytes == shape.gpu_memory_bytes:
            return sliced(card, part)
    return None


def _missing(missing_bytes: int) -> str:
    if missing_bytes < NEARLY_BYTES:
        return "narrowly does not fit"  # enough memory in total, but fragmented
    return f"needs {memory_text(missing_bytes)} more memory"
