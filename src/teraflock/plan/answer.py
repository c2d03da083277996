"""Turn a request into a plan. `tera plan` and `POST /v1/plans` share this code."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.base.amounts import parse_money
from teraflock.base.clock import Clock, today
from teraflock.base.errors import BadInput, unknown_name
from teraflock.base.exchange import Rates
from teraflock.catalog.renting import renting
from teraflock.estimate.memory import Memory
from teraflock.estimate.parallel import LINKS, OFFLOADED, SHARDED, TENSOR
from teraflock.offer.model import AVAILABLE_MINUTES, LIVE_PREFIX, NO_RESERVED, NOTHING_EXCLUDED, Shape
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
from teraflock.plan.words import PlanWords, assumptions_from, disk_prices, job_from, wish_from
from teraflock.storage.database import Database
from teraflock.workload.model import is_trace
from teraflock.workload.words import total_samples

STEPS: Final = (
    "`--batch` is per GPU, so choices with more GPUs do more work in the same number of steps;"
    " use `--global-batch` to compare equal work"
)

TOTAL: Final = (
    "`--batch` is per GPU: {most:,} GPUs train with {samples:,} samples per step in total, which can need more epochs"
    " or another learning rate; `--global-batch` keeps the total the same"
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
    memory: Memory | None = None
    """The memory during one step on each GPU of the first choice. None unless it was asked for."""


def answer(
    words: PlanWords,
    database: Database,
    rates: Rates,
    clock: Clock,
    *,
    servers: Sequence[Server] = (),
    timeline: bool = False,
) -> Answered:
    """Make a plan from the stored offers and the user's own hosts; with `timeline`, also the memory over a step."""
    currency = rates.known(words.currency)
    wish = wish_from(words, currency, rates, clock, job=words.model is not None)
    assumptions = assumptions_from(words)
    job = job_from(words.model, words, assumptions) if words.model is not None else None
    estimate: Estimator = job or _no_estimate
    service = OfferService(database, rates, clock)

    def provider_of(name: str) -> str:
        return parse_provider(name, service.providers)

    wish = replace(
        wish,
        providers=tuple(provider_of(name) for name in words.provider),
        disk_prices=disk_prices(words, currency, rates, clock, provider_of),
    )
    _check_sources(words.source, service)
    if words.available:
        wish = replace(wish, sources=_asked_lately(words, service, clock))
    plan = make_plan(
        database, rates, clock, wish, estimate, assumptions,
        servers=servers, top=words.top,
    )  # fmt: skip
    unknown = tuple(NOTHING_EXCLUDED.format(name=name) for name in service.excludes_nothing(wish.places))
    plan = replace(plan, warnings=(*plan.warnings, *_warnings(words, plan.choices), *unknown))
    none = None
    if not plan.choices:
        small = {each.shape.gpu for each in plan.rejected if each.code == "does_not_fit"}
        none = no_plan(plan, list(job.advice(small)) if job else [], _hints(plan, wish, assumptions))
    memory = job.memory_over_step(plan.choices[0].gpu_count) if timeline and job and plan.choices else None
    deadline = deadline_at(words.deadline, clock.now()) if words.deadline is not None else None
    return Answered(
        plan=plan, wish=wish, assumptions=assumptions, no_plan=none, on=today(clock),
        exchanged=_exchanged(words, currency, plan.choices[: words.top]), deadline=deadline,
        memory=memory,
    )  # fmt: skip


def _exchanged(words: PlanWords, currency: str, shown: Sequence[Choice]) -> tuple[str, ...]:
    amounts = [text for text in (words.budget, words.egress_price) if text]
    amounts += [text.rpartition("=")[2] for text in words.disk_price]
    asked = {parse_money(text, currency).currency for text in amounts}
    return tuple(sorted((asked | {choice.shape.currency for choice in shown}) - {currency}))


def _warnings(words: PlanWords, choices: Sequence[Choice]) -> Iterator[str]:
    """Warn about figures that were never measured and about choices that are hard to compare."""
    if words.steps is not None and words.batch is not None and len({each.gpu_count for each in choices}) > 1:
        yield STEPS
    shown = choices[: words.top]
    if words.batch is not None and words.task == "train" and any(each.instances > 1 for each in shown):
        most = max(each.gpu_count for each in shown)
        yield TOTAL.format(most=most, samples=most * words.batch * (words.accumulate or 1) // words.ways)
    exchange = words.task == "train" or words.shard or words.zero
    if words.model is not None and exchange and any(each.gpu_count > 1 for each in shown):
        yield LINKS
    if words.ways > 1 and choices:
        yield TENSOR
    if words.offload and choices:
        yield OFFLOADED
    if (words.shard or words.zero) and any(choice.gpu_count > 1 for choice in shown):
        yield SHARDED
    if words.model is not None:
        yield from _of_model(words, words.model, shown)


def _of_model(words: PlanWords, model: str, shown: Sequence[Choice]) -> Iterator[str]:
    from teraflock.workload.zoo import config_notes

    if slow := _pipeline(words, model, shown):
        yield slow
    if not is_trace(model):
        yield from config_notes(model, words.seq)


def _pipeline(words: PlanWords, model: str, shown: Sequence[Choice]) -> str:
    from teraflock.workload.zoo import entry

    if words.task != "train" or is_trace(model) or entry(model).kind != "image":
        return ""
    total = total_samples(words)

    def samples(choice: Choice) -> float | None:
        per_step = words.global_batch or (words.batch or 0) * choice.gpu_count // words.ways
        return total if words.steps is None else words.steps * per_step * (words.accumulate or 1)

    return pipeline_warning(shown, samples)


def _check_sources(names: Sequence[str], service: OfferService) -> None:
    if names:
        known = [OWN_SOURCE, *(source.name for source in service.sources())]
        for name in names:
            if name not in known:
                raise unknown_name("source", name, known, see="`tera offers sources` lists them")


def _asked_lately(words: PlanWords, service: OfferService, clock: Clock) -> tuple[str, ...]:
    """The sources that `tera offers refresh PROVIDER` imported in the last minutes, and own servers. Only of providers
    that list what is free."""

    if words.source:
        raise BadInput("`--available` names the sources itself", hint="Leave out `--source`")
    since = clock.now() - timedelta(minutes=AVAILABLE_MINUTES)
    fresh = [
        each.name
        for each in service.sources()
        if each.name.startswith(LIVE_PREFIX)
        and renting(each.name.removeprefix(LIVE_PREFIX)).stock
        and datetime.fromisoformat(each.imported_at) >= since
    ]
    if not fresh:
        raise BadInput(
            f"No provider was asked in the last {AVAILABLE_MINUTES} minutes what is available",
            hint="Ask one that you have an account at: `tera offers refresh PROVIDER`. It must list free capacity:"
            " `tera providers PROVIDER`",
        )
    return (OWN_SOURCE, *fresh)


def _hints(plan: Plan, wish: Wish, assumptions: Assumptions) -> Iterator[str]:
    """Give hints for a request that no offer meets."""
    if wish.cards and any(
        each.code == "not_a_gpu" and each.shape.gpu in wish.cards for each in plan.rejected
    ):
        yield "Only GPUs can be estimated. Plan other accelerators by time, with `--hours` in place of a MODEL"
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
