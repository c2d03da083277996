"""Parse a plan request from `tera plan` or the API into the wish, the job and the assumptions."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from teraflock.base.amounts import parse_money
from teraflock.base.clock import Clock, today
from teraflock.base.errors import BadInput, one_of, unknown_name
from teraflock.base.exchange import Rates
from teraflock.base.quantities import Whole, Word, Words, check_between, parse_memory_bytes
from teraflock.catalog.places import place_filter
from teraflock.offer.model import MODES
from teraflock.offer.words import parse_age, parse_count, parts_named
from teraflock.plan.assumptions import Assumptions, shipped_assumptions
from teraflock.plan.deadline import deadline_hours
from teraflock.plan.model import SORTS, Wish
from teraflock.workload.words import WorkloadWords, check_total, total_samples, workload_from

if TYPE_CHECKING:
    from teraflock.plan.job import Job

INSTANCES_MAX: Final = 64
WORK_MAX: Final = 1e13  # steps or samples; larger amounts overflow the cost
GB_MAX: Final = 1e9
JOB_OPTIONS: Final = (
    "batch", "global_batch", "seq", "image_size", "optimizer", "gradient_checkpointing", "lora_rank", "lora_targets",
    "lora_dtype", "load_in", "accumulate", "compile", "kv_cache",
    "steps", "epochs", "samples", "shard", "zero", "offload", "interruptions", "checkpoint", "restart", "network",
    "tensor_parallel", "precision", "task",
)  # fmt: skip
"""Options that need a MODEL."""


TOP: Final = 10
TOP_MAX: Final = 1000


class PlanWords(WorkloadWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan request: a job with a model, or a machine for `hours` or `hours_per_month` without one."""

    model: Word | None = None
    interruptions: float | None = None
    checkpoint: float | None = None
    restart: float | None = None
    hours: float | None = None
    hours_per_month: float | None = None
    gpu: Words = ()
    """Only these GPU models, any of them."""
    gpus: Word = "1+"
    instances: Word = "1"
    network: float | None = None
    memory_min: Word | None = None
    memory_total_min: Word | None = None
    deadline: Word | None = None
    budget: Word | None = None
    provider: Words = ()
    region: Words = ()
    country: Words = ()
    not_in: Words = ()
    newer_than: Word | None = None
    slices: bool = False
    mode: Words = ()
    source: Words = ()
    """Only offers of these imported catalogs."""
    available: bool = False
    """Only offers that accounts at providers listed in the last minutes, and own servers."""
    disk: float = 0.0
    disk_price: Words = ()
    egress: float = 0.0
    egress_price: Word | None = None
    address: bool = False
    currency: Word = "USD"
    sort: Word = "cost"
    top: Whole = TOP


def job_from(model: str, words: PlanWords, assumptions: Assumptions) -> "Job":
    # Imported here because a plan without a model needs no estimate.
    from teraflock.plan.job import Job

    samples = total_samples(words)
    if (words.steps is None) == (samples is None):
        raise BadInput("The amount of work is missing", hint="Give `--epochs` and `--samples`, or `--steps`")
    amounts = [each for each in (words.steps, words.epochs, words.samples, samples) if each is not None]
    if not all(0 < each <= WORK_MAX for each in amounts):
        raise BadInput(
            "The amount of work is out of range",
            hint=f"Steps, epochs and samples must be above 0 and at most {WORK_MAX:,.0f}",
        )
    check_total(words)
    total = words.global_batch
    return Job(
        workload_from(model, words.batch if total is None else total, words),
        steps=words.steps,
        samples=samples,
        network=lambda instance_type: assumptions.network(instance_type)[0],
        stage=words.stage,
        offload=words.offload,
        tensor_parallel=words.ways,
        global_batch=total,
    )


def assumptions_from(words: PlanWords) -> Assumptions:
    """Return the shipped assumptions with the user's overrides."""
    assumed = shipped_assumptions()
    if (rate := words.interruptions) is not None:
        if not 0 <= rate <= 60:
            raise BadInput(f"`--interruptions {rate:g}` is out of range", hint="Give 0 to 60 per hour")
        assumed = replace(
            assumed,
            interruptions_per_hour=rate,
            interruptions_by_provider={},
            interruptions_because="from `--interruptions`",
        )
    if (gbps := words.network) is not None:
        if not 0 < gbps <= 10_000:
            raise BadInput(f"`--network {gbps:g}` is out of range", hint="Give 0.1 to 10000 Gbit/s")
        assumed = replace(assumed, network_gbps=gbps, network_because="from `--network`", network_by_type={})
    for option, seconds in (("checkpoint", words.checkpoint), ("restart", words.restart)):
        if seconds is not None:
            if not 0 < seconds <= 86_400:
                raise BadInput(f"`--{option} {seconds:g}` is out of range", hint="Give seconds, up to 86400")
            assumed = replace(assumed, **{f"{option}_seconds": seconds})
    return assumed


def wish_from(words: PlanWords, currency: str, rates: Rates, clock: Clock, *, job: bool) -> Wish:
    hours, monthly = words.hours, words.hours_per_month
    if job and (hours is not None or monthly is not None):
        raise BadInput(
            "`--hours` and `--hours-per-month` cannot be combined with a MODEL",
            hint="Leave them out: the time of a job is estimated",
        )
    if not job and (hours is None) == (monthly is None):
        raise BadInput(
            "A plan needs a MODEL, `--hours` or `--hours-per-month`",
            hint="Give exactly one of them",
        )
    wanted = 0.0 if job else hours if hours is not None else monthly or 0.0
    if not job and (not 0 < wanted <= 100_000 or (monthly or 0) > 730):
        raise BadInput(
            f"{wanted:g} hours are out of range",
            hint="Give `--hours` up to 100000, or `--hours-per-month` up to 730",
        )
    if not job:
        _check_no_job_options(words)
    if not all(0 <= each <= GB_MAX for each in (words.disk, words.egress)):
        raise BadInput(
            "`--disk` or `--egress` is out of range",
            hint=f"Give 0 to {GB_MAX:,.0f} GB",
        )
    if words.disk_price and not words.disk:
        raise BadInput("`--disk-price` needs `--disk`", hint="Give the size of the disk in GB")
    if words.egress_price is not None and not words.egress:
        raise BadInput("`--egress-price` needs `--egress`", hint="Give the amount of traffic in GB")
    check_between("top", words.top, 1, TOP_MAX)
    for mode in words.mode:
        one_of("mode", mode, MODES)
    one_of("order", words.sort, SORTS)
    gpus_min, gpus_max = _gpu_count(words.gpus)
    instances_min, instances_max = _instances(words.instances)
    if words.network is not None and (instances_max < 2 or not job):
        raise BadInput(
            "`--network` needs a MODEL and several machines", hint="Add `--instances 1-4` and a MODEL"
        )
    parts = parts_named(words.gpu)
    return Wish(
        use="job" if job else "hours" if hours is not None else "monthly",
        hours=wanted,
        cards=_cards(words.gpu),
        gpus_min=gpus_min,
        gpus_max=gpus_max,
        instances_min=instances_min,
        instances_max=instances_max,
        memory_bytes_min=_memory(words.memory_min),
        memory_total_bytes_min=_memory(words.memory_total_min),
        modes=tuple(mode for mode in MODES if mode in words.mode),
        deadline_hours=deadline_hours(words.deadline, clock.now()) if words.deadline is not None else None,
        budget_micros=_money(words.budget, currency, rates, clock) if words.budget is not None else None,
        currency=currency,
        disk_gb=words.disk,
        egress_gb=words.egress,
        egress_micros_per_gb=(
            _money(words.egress_price, currency, rates, clock) if words.egress_price is not None else None
        ),
        address=words.address,
        places=place_filter(words.region, words.country, words.not_in),
        newer_than=parse_age(words.newer_than, today(clock)) if words.newer_than is not None else "",
        slices=words.slices or bool(parts),
        parts=parts,
        sources=words.source,
        sort=next(sort for sort in SORTS if sort == words.sort),
    )


def _check_no_job_options(words: PlanWords) -> None:
    defaults = PlanWords()
    given = [name for name in JOB_OPTIONS if getattr(words, name) != getattr(defaults, name)]
    if given:
        raise BadInput(
            f"`--{given[0].replace('_', '-')}` needs a MODEL",
            hint="Add a MODEL, or leave the option out",
        )


def _instances(text: str) -> tuple[int, int]:
    low, dash, high = text.strip().partition("-")
    least, most = (
        int(each) if each.isascii() and each.isdigit() else 0 for each in (low, high if dash else low)
    )
    if not 1 <= least <= most <= INSTANCES_MAX:
        raise BadInput(
            f"`{text}` is not a number of machines", hint=f"Write `4` or `1-8`, up to {INSTANCES_MAX}"
        )
    return least, most


def _memory(text: str | None) -> int | None:
    return parse_memory_bytes(text) if text is not None else None


def _money(text: str, currency: str, rates: Rates, clock: Clock) -> int:
    """Parse `200`, `$200` or `200 EUR` into micro-units of the plan's currency."""
    money = parse_money(text, currency)
    if not rates.knows(money.currency):
        raise unknown_name("currency", money.currency, rates.currencies(), see="`tera rates` lists them")
    return rates.exchange(money, currency, on=today(clock)).money.micros


def disk_prices(
    words: PlanWords, currency: str, rates: Rates, clock: Clock, provider_of: Callable[[str], str]
) -> tuple[tuple[str, int], ...]:
    """Parse `0.05` or `gcp=0.05` of each `--disk-price`. The last one for a provider counts."""
    found: dict[str, int] = {}
    for text in words.disk_price:
        name, equals, amount = text.rpartition("=")
        found[provider_of(name) if equals else ""] = _money(amount, currency, rates, clock)
    return tuple(found.items())


def _gpu_count(text: str) -> tuple[int, int | None]:
    least, most = parse_count(text)
    if most == 0:
        raise BadInput(
            "A plan needs at least one GPU, not `--gpus 0`",
            hint="`tera offers --count 0` lists machines without a GPU",
        )
    return least or 1, most


def _cards(names: Words) -> tuple[str, ...]:
    from teraflock.catalog.names import find_kinds  # imported here because only `--gpu` needs it

    return tuple(dict.fromkeys(id for name in names for id in find_kinds(name)))
