"""Turn a request into a plan. `tera plan` and `POST /v1/plans` share this code."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.base.amounts import parse_money
from teraflock.base.clock import Clock, today
from teraflock.base.errors import unknown_name
from teraflock.base.exchange import Rates
from teraflock.estimate.parallel import HOST_BYTES_PER_SECOND, NVLINK_REACH, PCIE_REACH
from teraflock.offer.model import NO_RESERVED, Shape
from teraflock.offer.service import OfferService
from teraflock.offer.words import parse_provider
from teraflock.plan.assumptions import Assumptions
from teraflock.plan.deadline import deadline_at
from teraflock.plan.model import Choice, Misfit, Plan, Wish
from teraflock.plan.no_plan import NoPlan, no_plan
from teraflock.plan.owned import OWN_SOURCE, Server
from teraflock.plan.pipeline import pipeline_warning
from teraflock.plan.rules import Estimator
from teraflock.plan.service import plan as make_plan
from teraflock.plan.words import PlanWords, assumptions_from, job_from, wish_from
from teraflock.storage.database import Database
from teraflock.workload.words import total_samples

SHARDED: Final = (
    "the memory of sharded jobs was checked with language models under PyTorch's FSDP; their time is computed"
)

TENSOR: Final = (
    "the speed with tensor parallelism is computed, not measured: two all-reduces per layer and pass, without overlap,"
    f" at {NVLINK_REACH:.0%} of NVLink or {PCIE_REACH:.0%} of PCIe bandwidth"
)

OFFLOADED: Final = (
    "the speed with `--offload` is computed, not measured: it assumes"
    f" {HOST_BYTES_PER_SECOND / 1e9:.0f} GB/s of host memory bandwidth and {PCIE_REACH:.0%} of PCIe bandwidth"
)

STEPS: Final = (
    "`--batch` is per GPU, so choices with more GPUs do more work in the same number of steps;"
    " use `--global-batch` to compare equal work"
)


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    plan: Plan
    wish: Wish
    assumptions: Assumptions
    no_plan: NoPlan | None
    """The error to raise if the plan has no choices."""
    on: date
    """The day whose exchange rates are used."""
    exchanged: tuple[str, ...] = ()
    """Currencies of the request and of the shown choices other than the plan's own, for which rates were used."""
    deadline: datetime | None = None
    """The time that a date or the name of a day was understood as. None for a duration."""


def answer(
    words: PlanWords, database: Database, rates: Rates, clock: Clock, *, servers: Sequence[Server] = ()
) -> Answered:
    """Make a plan from the stored offers and the user's own hosts."""
    currency = rates.known(words.currency)
    wish = wish_from(words, currency, rates, clock, job=words.model is not None)
    assumptions = assumptions_from(words)
    job = job_from(words.model, words, assumptions) if words.model is not None else None
    estimate: Estimator = job or _no_estimate
    service = OfferService(database, rates, clock)
    wish = replace(wish, providers=tuple(parse_provider(name, service.providers) for name in words.provider))
    _check_sources(words.source, service)
    plan = make_plan(
        database, rates, clock, wish, estimate, assumptions,
        servers=servers, top=words.top,
    )  # fmt: skip
    plan = replace(plan, warnings=(*plan.warnings, *_warnings(words, plan.choices)))
    none = None
    if not plan.choices:
        small = {each.shape.gpu for each in plan.rejected if each.code == "does_not_fit"}
        none = no_plan(plan, list(job.advice(small)) if job else [], _hints(wish, assumptions))
    deadline = deadline_at(words.deadline, clock.now()) if words.deadline else None
    return Answered(
        plan=plan, wish=wish, assumptions=assumptions, no_plan=none, on=today(clock),
        exchanged=_exchanged(words, currency, plan.choices[: words.top]), deadline=deadline,
    )  # fmt: skip


def _exchanged(words: PlanWords, currency: str, shown: Sequence[Choice]) -> tuple[str, ...]:
    amounts = [text for text in (words.budget, words.egress_price) if text]
    asked = {parse_money(text, currency).currency for text in amounts}
    return tuple(sorted((asked | {choice.shape.currency for choice in shown}) - {currency}))


def _warnings(words: PlanWords, choices: Sequence[Choice]) -> Iterator[str]:
    """Warn about figures that were never measured and about choices that are hard to compare."""
    if words.steps is not None and words.batch is not None and len({each.gpu_count for each in choices}) > 1:
        yield STEPS
    if words.ways > 1 and choices:
        yield TENSOR
    if words.offload and choices:
        yield OFFLOADED
    if (words.shard or words.zero) and any(choice.gpu_count > 1 for choice in choices[: words.top]):
        yield SHARDED
    if words.model is not None and (slow := _pipeline(words, words.model, choices[: words.top])):
        yield slow


def _pipeline(words: PlanWords, model: str, shown: Sequence[Choice]) -> str:
    from teraflock.workload.model import is_trace
    from teraflock.workload.zoo import entry

    if words.task != "train" or is_trace(model) or entry(model).kind != "image":
        return ""
    total = total_samples(words)

    def samples(choice: Choice) -> float | None:
        per_step = words.global_batch or (words.batch or 0) * choice.gpu_count // words.ways
        return total if words.steps is None else words.steps * per_step

    return pipeline_warning(shown, samples)


def _check_sources(names: Sequence[str], service: OfferService) -> None:
    if names:
        known = [OWN_SOURCE, *(source.name for source in service.sources())]
        for name in names:
            if name not in known:
                raise unknown_name("source", name, known, see="`tera offers sources` lists them")


def _hints(wish: Wish, assumptions: Assumptions) -> Iterator[str]:
    """Give hints for a request that no offer meets."""
    if wish.modes == ("reserved",):
        yield NO_RESERVED
    if wish.places:
        yield "`tera offers regions` lists the regions and their countries"
    if wish.use == "job" and wish.instances_max > 1:
        yield (
            f"The plan assumes {assumptions.network_gbps:g} Gbit/s between machines where the provider publishes no"
            " figure; set another with `--network`"
        )


def _no_estimate(shape: Shape, instances: int) -> Misfit:
    return Misfit("no_estimate", "no workload was given to estimate")
