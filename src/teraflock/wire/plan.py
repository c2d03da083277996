"""A plan as JSON, for `tera plan --json` and `POST /v1/plans`."""

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from teraflock.base.exchange import Rates
from teraflock.base.filling import filled
from teraflock.offer.model import Shape
from teraflock.plan.answer import Answered
from teraflock.plan.model import Choice, Hours, Rejection
from teraflock.plan.pipeline import ASSUMED, IMAGES_PER_SECOND_PER_VCPU
from teraflock.plan.service import LeftOut
from teraflock.plan.words import PlanWords
from teraflock.wire.offer import OfferShape, shape_offer

CONFIG_CHARACTERS_MAX: Final = 65_536
TRACE_CHARACTERS_MAX: Final = 700_000


class PlanRequest(PlanWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan request. Fields have the names of the options of `tera plan`. `model` must be a name, not a file."""

    config: Annotated[str, Meta(max_length=CONFIG_CHARACTERS_MAX)] = ""
    """The text of a Hugging Face `config.json`, in place of `model`."""
    trace: Annotated[str, Meta(max_length=TRACE_CHARACTERS_MAX, pattern=r"^[A-Za-z0-9+/=]*$(?!\n)")] = ""
    """A file that `tera trace` wrote, in base64, in place of `model`."""
    timeline: bool = False
    """Add the memory over one step, on each GPU of the first choice."""


class CostShape(msgspec.Struct, frozen=True):
    expected_micros: int
    low_micros: int
    high_micros: int
    currency: str


class PartShape(msgspec.Struct, frozen=True):
    what: str
    micros: int
    because: str


class ChoiceShape(msgspec.Struct, frozen=True, kw_only=True):
    rank: int
    offer: OfferShape | None
    instances: int
    gpu_count: int
    """GPUs of all instances together."""
    mode: str | None
    hours: Hours
    cost: CostShape
    parts: tuple[PartShape, ...]
    interruptions: float
    uncounted: tuple[str, ...] = ()
    """Requested costs that are not in `cost`, because the provider's price is not known."""
    pareto: bool


class RejectedOfferShape(msgspec.Struct, frozen=True, kw_only=True):
    """A group of offers that differ only in place and price."""

    provider: str
    instance_type: str
    gpu: str | None
    gpu_count: int | None
    mode: str | None
    offers: int


class RejectionShape(msgspec.Struct, frozen=True, kw_only=True):
    offer: RejectedOfferShape
    code: str
    reason: str


class LeftOutShape(msgspec.Struct, frozen=True, kw_only=True):
    """One offer that was not chosen, for `--why --json`."""

    offer: OfferShape
    code: str
    reason: str


class NoPlanShape(msgspec.Struct, frozen=True):
    detail: str
    hint: str


class ExchangeShape(msgspec.Struct, frozen=True):
    currency: str
    micros_per_usd: int
    day: str
    source: str


class AssumptionsShape(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan takes for granted. Everything that `tera plan` prints about its assumptions is here."""

    as_of: str
    interruptions_per_hour: float
    """Of a spot machine, where the provider has no rate of its own."""
    interruptions_by_provider: dict[str, float]
    interruptions_because: str
    checkpoint_seconds: float
    restart_seconds: float
    network_gbps: float
    """Between machines, where the provider publishes no figure."""
    network_because: str
    images_per_second_per_vcpu: float
    data_pipeline: str
    exchange: tuple[ExchangeShape, ...]
    """The rates of the currencies in this plan. Empty if there is only one currency."""
    deadline: str | None
    """The time, UTC, that a date or the name of a day was understood as."""
    budget_micros: int | None
    """In the currency of the plan."""
    disk_prices: dict[str, int] = {}
    """The request's own prices per GB of disk and month, in the plan's currency, by provider; "" means any other."""


class PlanShape(msgspec.Struct, frozen=True, kw_only=True):
    choices: tuple[ChoiceShape, ...]
    rejected: tuple[RejectionShape, ...]
    rejected_counts: dict[str, int]
    """The number of rejected offers by reason."""
    warnings: tuple[str, ...]
    no_plan: NoPlanShape | None
    """Set if there are no choices: why, and what would help."""
    assumptions: AssumptionsShape
    memory_peak_bytes: int = 0
    """The most in use on each GPU of the first choice, also within an operation. 0 unless `timeline` was set."""
    memory_timeline_bytes: tuple[int, ...] = ()
    """Bytes in use after the operations of one step. Empty unless `timeline` was set."""


def shape_plan(answered: Answered, *, top: int, rates: Rates) -> PlanShape:
    plan, none = answered.plan, answered.no_plan
    return PlanShape(
        choices=tuple(
            _choice(rank, each, rates, answered.on) for rank, each in enumerate(plan.choices[:top], start=1)
        ),
        rejected=tuple(_rejection(each) for each in plan.rejected),
        rejected_counts=plan.counts(),
        warnings=plan.warnings,
        no_plan=NoPlanShape(none.sentence, none.hint) if none else None,
        assumptions=_assumptions(answered, rates),
        memory_peak_bytes=answered.memory.live_peak_bytes if answered.memory else 0,
        memory_timeline_bytes=tuple(answered.memory.timeline) if answered.memory else (),
    )


def _assumptions(answered: Answered, rates: Rates) -> AssumptionsShape:
    assumed, wish = answered.assumptions, answered.wish
    currencies = {wish.currency, *answered.exchanged} - {"USD"} if answered.exchanged else set()
    used = [rates.rate(each, answered.on) for each in sorted(currencies)]
    return filled(
        AssumptionsShape,
        assumed,
        images_per_second_per_vcpu=IMAGES_PER_SECOND_PER_VCPU,
        data_pipeline=ASSUMED,
        exchange=tuple(
            ExchangeShape(each.currency, each.micros_per_usd, each.day.isoformat(), each.source)
            for each in used
        ),
        deadline=answered.deadline.isoformat() if answered.deadline else None,
        budget_micros=wish.budget_micros,
        disk_prices=dict(wish.disk_prices),
    )


def shape_left_out(
    offers: Iterable[LeftOut], *, currency: str, rates: Rates, on: date
) -> Iterator[LeftOutShape]:
    for each in offers:
        offer = shape_offer(each.offer, currency=currency, per="hour", rates=rates, on=on)
        yield LeftOutShape(offer=offer, code=each.code, reason=each.reason)


def _choice(rank: int, choice: Choice, rates: Rates, on: date) -> ChoiceShape:
    cost = choice.cost
    offer = choice.offer
    return filled(
        ChoiceShape,
        choice,
        rank=rank,
        offer=shape_offer(offer, currency=cost.currency, per="hour", rates=rates, on=on) if offer else None,
        mode=choice.shape.mode,
        cost=CostShape(cost.expected_micros, cost.low_micros, cost.high_micros, cost.currency),
        parts=tuple(PartShape(part.what, part.micros, part.because) for part in choice.parts),
    )


def _rejection(rejection: Rejection) -> RejectionShape:
    return RejectionShape(offer=_rejected(rejection.shape), code=rejection.code, reason=rejection.reason)


def _rejected(shape: Shape) -> RejectedOfferShape:
    return filled(RejectedOfferShape, shape, gpu=shape.gpu or None)
