"""The words of a plan, as `tera plan` and the API take them: the wish, the job, and what is assumed."""

from datetime import date, datetime
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from teraflock.base.clock import Clock, today
from teraflock.base.errors import BadInput, one_of, unknown_name
from teraflock.base.exchange import Rates
from teraflock.base.money import Money, parse_micros
from teraflock.base.quantities import Whole, Word, Words, check_between, parse_memory_bytes
from teraflock.offer.model import MODES
from teraflock.offer.words import parse_count
from teraflock.plan.assumptions import Assumptions, shipped_assumptions
from teraflock.plan.model import SORTS, Wish
from teraflock.workload.words import WorkloadWords, check_total, total_samples, workload_from

if TYPE_CHECKING:
    from teraflock.plan.job import Job

INSTANCES_MAX: Final = 64
WORK_MAX: Final = (
    1e13  # steps or samples; beyond, no machine finishes and no amount of money can be written down
)
GB_MAX: Final = 1e9
HOURS_MAX: Final = 1e6
OF_A_JOB: Final = (
    "batch", "global_batch", "seq", "image_size", "optimizer", "gradient_checkpointing", "lora_rank", "kv_cache",
    "steps", "epochs", "samples", "shard", "zero", "offload", "interruptions", "checkpoint", "restart", "network",
    "tensor_parallel", "precision", "task",
)  # fmt: skip
"""Options that say nothing about a plain machine."""


TOP: Final = 10
TOP_MAX: Final = 1000
STAGE_MAX: Final = 3


class PlanWords(WorkloadWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan as it was asked for: with a model, a job; without, a machine for `hours` or `hours_per_month`."""

    model: Word | None = None
    shard: bool = False
    zero: Whole | None = None
    offload: bool = False
    interruptions: float | None = None
    checkpoint: float | None = None
    restart: float | None = None
    hours: float | None = None
    hours_per_month: float | None = None
    gpus: Word = "1+"
    instances: Word = "1"
    network: float | None = None
    memory_min: Word | None = None
    memory_total_min: Word | None = None
    deadline: Word | None = None
    budget: Word | None = None
    provider: Words = ()
    region: Words = ()
    mode: Words = ()
    disk: float = 0.0
    egress: float = 0.0
    egress_price: Word | None = None
    currency: Word = "USD"
    sort: Word = "cost"
    top: Whole = TOP


def job_from(model: str, words: PlanWords, assumptions: Assumptions) -> "Job":
    # loaded here: a plan of a plain machine needs no estimate
    from teraflock.plan.job import Job

    samples = total_samples(words)
    if (words.steps is None) == (samples is None):
        raise BadInput("Say how much there is to do", hint="Give `--epochs` and `--samples`, or `--steps`")
    amounts = [each for each in (words.steps, words.epochs, words.samples, samples) if each is not None]
    if not all(0 < each <= WORK_MAX for each in amounts):
        raise BadInput(
            "There must be something to do, and an end to it",
            hint=f"Steps, epochs and samples lie above zero and up to {WORK_MAX:.0e}",
        )
    check_total(words)
    total = words.global_batch
    return Job(
        workload_from(model, words.batch if total is None else total, words),
        steps=words.steps,
        samples=samples,
        network=lambda instance_type: assumptions.network(instance_type)[0],
        stage=_stage(words),
        offload=words.offload,
        tensor_parallel=words.ways,
        global_batch=total,
    )


def _stage(words: PlanWords) -> int:
    check_between("zero", words.zero, 1, STAGE_MAX)
    if words.shard and words.zero not in (None, STAGE_MAX):
        raise BadInput("`--shard` is ZeRO 3", hint="Say `--zero` alone")
    return STAGE_MAX if words.shard else words.zero or 0


def assumptions_from(words: PlanWords) -> Assumptions:
    """What is assumed, with what the user knows better in its place."""
    assumed = shipped_assumptions()
    if (often := words.interruptions) is not None:
        if not 0 <= often <= 60:
            raise BadInput(f"{often:g} interruptions an hour cannot be planned with", hint="Give 0 to 60")
        assumed = replace(
            assumed,
            interruptions_per_hour=often,
            interruptions_by_provider={},
            interruptions_because="as you said",
        )
    if (gbps := words.network) is not None:
        if not 0 < gbps <= 10_000:
            raise BadInput(f"A network of {gbps:g} Gbit/s cannot be planned with", hint="Give 0.1 to 10000")
        assumed = replace(assumed, network_gbps=gbps, network_because="as you said", network_by_type={})
    for option, seconds in (("checkpoint", words.checkpoint), ("restart", words.restart)):
        if seconds is not None:
            if not 0 < seconds <= 86_400:
                raise BadInput(f"`--{option} {seconds:g}` is no time in seconds up to a day")
            assumed = replace(assumed, **{f"{option}_seconds": seconds})
    return assumed


def wish_from(words: PlanWords, currency: str, rates: Rates, clock: Clock, *, job: bool) -> Wish:
    hours, monthly = words.hours, words.hours_per_month
    if job and (hours is not None or monthly is not None):
        raise BadInput("A job takes the hours it takes", hint="Leave out `--hours` and `--hours-per-month`")
    if not job and (hours is None) == (monthly is None):
        raise BadInput(
            "Say what is to be planned",
            hint="A MODEL to train, or a machine for `--hours` or `--hours-per-month`",
        )
    wanted = 0.0 if job else hours if hours is not None else monthly or 0.0
    if not job and (not 0 < wanted <= 100_000 or (monthly or 0) > 730):
        raise BadInput(f"A machine cannot be had for {wanted:g} hours", hint="A month has 730 hours")
    if not job:
        _refuse_words_of_a_job(words)
    if not all(0 <= each <= GB_MAX for each in (words.disk, words.egress)):
        raise BadInput(
            "A disk, or what leaves the cloud, has a size of nothing or more",
            hint=f"In GB, up to {GB_MAX:.0e}",
        )
    if bool(words.egress) != bool(words.egress_price):
        raise BadInput(
            "`--egress` and `--egress-price` belong together", hint="No provider's price of it is known here"
        )
    check_between("top", words.top, 1, TOP_MAX)
    for mode in words.mode:
        one_of("mode", mode, MODES)
    one_of("order", words.sort, SORTS)
    gpus_min, gpus_max = parse_count(words.gpus)
    instances_min, instances_max = _instances(words.instances)
    if words.network is not None and (instances_max < 2 or not job):
        raise BadInput(
            "`--network` joins several machines of a job", hint="Say `--instances 1-4` with a MODEL"
        )
    return Wish(
        use="job" if job else "hours" if hours is not None else "monthly",
        hours=wanted,
        gpus_min=gpus_min or 1,
        gpus_max=gpus_max,
        instances_min=instances_min,
        instances_max=instances_max,
        memory_bytes_min=parse_memory_bytes(words.memory_min) if words.memory_min else None,
        memory_total_bytes_min=parse_memory_bytes(words.memory_total_min) if words.memory_total_min else None,
        modes=tuple(mode for mode in MODES if mode in words.mode),
        deadline_hours=deadline_hours(words.deadline, clock.now()) if words.deadline else None,
        budget_micros=_budget(words.budget, currency, rates, clock) if words.budget else None,
        currency=currency,
        disk_gb=words.disk,
        egress_gb=words.egress,
        egress_micros_per_gb=_amount(words.egress_price) if words.egress_price else 0,
        sort=next(sort for sort in SORTS if sort == words.sort),
    )


def _refuse_words_of_a_job(words: PlanWords) -> None:
    usual = PlanWords()
    given = [name for name in OF_A_JOB if getattr(words, name) != getattr(usual, name)]
    if given:
        raise BadInput(
            f"`--{given[0].replace('_', '-')}` is about a job, and no MODEL is named",
            hint="Name a MODEL, or leave it out",
        )


def _instances(text: str) -> tuple[int, int]:
    low, dash, high = text.strip().partition("-")
    least, most = (
        int(each) if each.isascii() and each.isdigit() else 0 for each in (low, high if dash else low)
    )
    if not 1 <= least <= most <= INSTANCES_MAX:
        raise BadInput(
            f"`{text}` is no number of machines", hint=f"Write `4` or `1-8`, up to {INSTANCES_MAX}"
        )
    return least, most


def _budget(text: str, currency: str, rates: Rates, clock: Clock) -> int:
    """`200`, or `200USD` in a currency of its own."""
    stripped = text.strip()
    number = stripped.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    own = stripped[len(number) :].upper() or currency
    micros = _amount(number.strip() or stripped)
    if not rates.knows(own):
        raise unknown_name("currency", own, rates.currencies(), see="`tera rates` lists them")
    return rates.exchange(Money(micros, own), currency, on=today(clock)).money.micros


def _amount(text: str) -> int:
    try:
        micros = parse_micros(text)
    except ValueError:
        raise BadInput(
            f"`{text}` is no amount of money", hint="Write a number; `--currency` says of what"
        ) from None
    if micros < 0:
        raise BadInput(f"`{text}` is less than nothing", hint="Give an amount of zero or more")
    return micros


def deadline_hours(text: str, now: datetime) -> float:
    """`36h`, `7d` or a date (its end) → hours from now."""
    unit = {"h": 1.0, "d": 24.0}.get(text[-1:].lower())
    try:
        if unit:
            hours = float(text[:-1]) * unit
        else:
            day = date.fromisoformat(text)
            end = datetime(day.year, day.month, day.day, 23, 59, 59, tzinfo=now.tzinfo)
            hours = (end - now).total_seconds() / 3600
    except ValueError:
        raise BadInput(f"`{text}` is no deadline", hint="Write `36h`, `7d` or `2026-12-31`") from None
    if hours <= 0:
        raise BadInput(f"The deadline `{text}` is past", hint="Give a time to come")
    if not hours <= HOURS_MAX:
        raise BadInput(f"`{text}` is no deadline", hint="Write `36h`, `7d` or `2026-12-31`")
    return hours
