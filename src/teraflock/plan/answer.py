"""From the words of a request to a plan: what `tera plan` and `POST /v1/plans` share."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.base.clock import Clock, today
from teraflock.base.exchange import Rates
from teraflock.estimate.parallel import HOST_BYTES_PER_SECOND, NVLINK_REACH, PCIE_REACH
from teraflock.offer.model import Shape
from teraflock.offer.service import OfferService
from teraflock.offer.words import parse_provider
from teraflock.plan.assumptions import Assumptions
from teraflock.plan.model import Choice, Misfit, Plan, Wish
from teraflock.plan.no_plan import NoPlan, no_plan
from teraflock.plan.owned import Server
from teraflock.plan.rules import Estimator
from teraflock.plan.service import plan as make_plan
from teraflock.plan.words import PlanWords, assumptions_from, job_from, wish_from
from teraflock.storage.database import Database

SHARDED: Final = (
    "the memory of sharded jobs was checked with language models under PyTorch's FSDP; their time is computed"
)

TENSOR: Final = (
    "tensor parallelism is computed, not measured: two all-reduces per layer and pass, which nothing hides, at"
    f" {NVLINK_REACH:.0%} of NVLink or {PCIE_REACH:.0%} of PCIe"
)

OFFLOADED: Final = (
    f"the optimizer on the host is taken to move {HOST_BYTES_PER_SECOND / 1e9:.0f} GB/s through memory and"
    f" {PCIE_REACH:.0%} of PCIe; computed, not measured"
)

STEPS: Final = (
    "`--batch` counts the samples on each GPU, so rows with more GPUs do more work in the same steps;"
    " `--global-batch` gives all the same work"
)


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    plan: Plan
    wish: Wish
    assumptions: Assumptions
    no_plan: NoPlan | None
    """Why there is no choice, if there is none."""
    on: date
    """The day whose exchange rates count."""


def answer(
    words: PlanWords, database: Database, rates: Rates, clock: Clock, *, servers: Sequence[Server] = ()
) -> Answered:
    """Plan what the words ask for, over the stored offers and the user's own servers."""
    currency = rates.known(words.currency)
    wish = wish_from(words, currency, rates, clock, job=words.model is not None)
    assumptions = assumptions_from(words)
    job = job_from(words.model, words, assumptions) if words.model is not None else None
    estimate: Estimator = job or _no_estimate
    known_providers = OfferService(database, rates, clock).providers
    wish = replace(wish, providers=tuple(parse_provider(name, known_providers) for name in words.provider))
    plan = make_plan(
        database, rates, clock, wish, estimate, assumptions,
        servers=servers, regions=words.region, top=words.top,
    )  # fmt: skip
    plan = replace(plan, warnings=(*plan.warnings, *_warnings(words, plan.choices)))
    none = None
    if not plan.choices:
        none = no_plan(plan, list(job.advice()) if job else [], _network_hint(wish, assumptions))
    return Answered(plan=plan, wish=wish, assumptions=assumptions, no_plan=none, on=today(clock))


def _warnings(words: PlanWords, choices: Sequence[Choice]) -> Iterator[str]:
    """What was computed and never measured, and what makes choices hard to compare."""
    if words.steps is not None and words.batch is not None and len({each.gpu_count for each in choices}) > 1:
        yield STEPS
    if words.ways > 1 and choices:
        yield TENSOR
    if words.offload and choices:
        yield OFFLOADED
    if (words.shard or words.zero) and any(choice.gpu_count > 1 for choice in choices[: words.top]):
        yield SHARDED


def _network_hint(wish: Wish, assumptions: Assumptions) -> str:
    if wish.use != "job" or wish.instances_max < 2:
        return ""
    return (
        f"Where no maker publishes another, {assumptions.network_gbps:g} Gbit/s between machines were assumed:"
        " `--network` says otherwise"
    )


def _no_estimate(shape: Shape, instances: int) -> Misfit:
    return Misfit("no_estimate", "no estimate of the work was asked for")
