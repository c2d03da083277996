"""`tera plan`: the cheapest way to have what is needed, and why not the others."""

import gc
from collections import Counter
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

import click
from msgspec.structs import replace

from teraflock.app.local import Local
from teraflock.app.price_book import read_book
from teraflock.base.clock import Clock, today
from teraflock.base.errors import BadInput, TeraflockError, unknown_name
from teraflock.base.exchange import Rates
from teraflock.base.money import Money, decimal_text, parse_micros
from teraflock.base.quantities import parse_memory_bytes
from teraflock.cli.lazy import LazyGroup
from teraflock.cli.offers.filters import OneOf, parse_count, parse_provider
from teraflock.cli.offers.footer import rate_text
from teraflock.cli.output import columns, gpus_text, remark, write_json
from teraflock.cli.table import Column, render
from teraflock.offer.model import MODES, Shape
from teraflock.plan.assumptions import Assumptions, shipped_assumptions
from teraflock.plan.model import SORTS, Choice, Misfit, Plan, Wish
from teraflock.plan.rules import Estimator, hours_text
from teraflock.plan.service import plan as make_plan
from teraflock.wire.plan import shape_plan

if TYPE_CHECKING:
    from teraflock.plan.job import Job

TOP: Final = 10
PLAIN: Final = "for"  # the name of planning itself among the commands of the group; nobody writes it


class NoPlan(TeraflockError):
    """Understood, looked through, and nothing is left: an honest answer."""

    code = "no_plan"
    exit_code = 3


HELP: Final = """From a job to the cheapest way to finish it, over all offers and own servers.

MODEL is a name of the zoo or a trace, as in `tera estimate`; or plan a plain machine with `--hours` or
`--hours-per-month`.

What is paid is more than price × hours: billing steps and minimums, whole months of monthly offers with what goes
unused, disks, and on spot the work that is lost. Every other offer has one reason why it was not chosen (`--why`).

\b
Examples:
  tera plan vgg16 --batch 256 --epochs 90 --samples 1281167 --deadline 7d --budget 500
  tera plan --memory-total-min 48 --gpus 2-4 --hours-per-month 200
  tera plan --gpus 1 --hours 100 --deadline 7d --budget 200
  tera plan --hours-per-month 5 --disk 50 --explain
"""


class _Plan(LazyGroup):
    """`tera plan …` plans; `tera plan buy-or-rent …` is a command of its own, loaded when it is called."""

    commands_by_name: ClassVar = {
        "buy-or-rent": ("teraflock.cli.buy_or_rent", "At which use an own server pays")
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not (args and args[0] in self.commands_by_name) and args[:1] not in (["--help"], ["-h"]):
            args = [PLAIN, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return (PLAIN, plain, args[1:]) if args[0] == PLAIN else super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        plain.format_help(click.Context(plain, info_name=ctx.command_path), formatter)
        self.format_commands(ctx, formatter)


@click.command(PLAIN, help=HELP)
@click.argument("model", required=False)
@click.option("--batch", type=int, help="Samples per step on each GPU.")
@click.option("--seq", type=int, help="Tokens per sample.")
@click.option("--image-size", type=int, help="Pixels on a side.")
@click.option(
    "--precision", default="fp32", show_default=True, help="fp32, tf32, amp-bf16, amp-fp16, bf16, fp16."
)
@click.option("--optimizer", default=None, help="sgd, adam, adamw, adafactor.")
@click.option("--gradient-checkpointing", is_flag=True, help="Recompute activations in the backward pass.")
@click.option("--lora-rank", type=int, help="Train LoRA matrices of this rank, and nothing else.")
@click.option("--task", default="train", show_default=True, help="train or infer.")
@click.option("--kv-cache", is_flag=True, help="Inference that keeps keys and values of all tokens.")
@click.option("--steps", type=float, help="Steps to run.")
@click.option("--epochs", type=float, help="With --samples: passes over the data.")
@click.option("--samples", type=float, help="With --epochs: samples in the data.")
@click.option(
    "--interruptions", type=float, metavar="PER_HOUR", help="How often a spot machine is taken away."
)
@click.option("--hours", type=float, help="A machine for so many hours, once.")
@click.option("--hours-per-month", type=float, help="A machine for so many hours of every month.")
@click.option("--gpus", default="1+", show_default=True, metavar="N", help="GPUs: `4`, `2-8` or `4+`.")
@click.option("--memory-min", metavar="GB", help="Memory of each GPU, at least.")
@click.option("--memory-total-min", metavar="GB", help="Memory of all GPUs together, at least.")
@click.option(
    "--deadline", metavar="TIME", help="`36h`, `7d`, or a date: by then it is done, nine times of ten."
)
@click.option("--budget", metavar="AMOUNT", help="At most so much: `200`, or `200USD`.")
@click.option("--provider", multiple=True, metavar="NAME", help="A cloud; may be repeated.")
@click.option("--region", multiple=True, metavar="TEXT", help="Part of a region's name; may be repeated.")
@click.option("--mode", multiple=True, type=OneOf("mode", MODES), help="How it is bought; may be repeated.")
@click.option("--disk", type=float, default=0.0, metavar="GB", help="A disk of this size, kept throughout.")
@click.option(
    "--egress", type=float, default=0.0, metavar="GB", help="What leaves the cloud, with `--egress-price`."
)
@click.option("--egress-price", metavar="AMOUNT", help="Price of a GB that leaves, in `--currency`.")
@click.option("--currency", default="USD", show_default=True, metavar="CODE", help="Currency of the plan.")
@click.option("--sort", type=OneOf("order", SORTS), default="cost", show_default=True, help="What is best.")
@click.option(
    "--top", type=click.IntRange(1, 1000), default=TOP, show_default=True, help="Show the best so many."
)
@click.option("--why", is_flag=True, help="List every offer that was not chosen, with its reason.")
@click.option("--explain", is_flag=True, help="The arithmetic of the first choice, in full.")
@click.option("--json", "as_json", is_flag=True, help="The whole plan as JSON on stdout.")
def plain(
    model: str | None,
    top: int,
    why: bool,
    explain: bool,
    as_json: bool,
    region: tuple[str, ...],
    **words: Any,
) -> None:
    gc.disable()  # one plan and out: collecting the replay's blocks would only cost the cold start
    with Local() as local:
        currency = local.currency(words["currency"])
        wish = _wish(words, currency, local.rates, local.clock, job=model is not None)
        job = _job(model, words) if model is not None else None
        estimate: Estimator = job or _no_estimate
        wish = replace(
            wish,
            providers=tuple(parse_provider(name, local.offers().providers) for name in words["provider"]),
        )
        assumptions = _assumptions(words["interruptions"])
        plan = make_plan(
            local.database(), local.rates, local.clock, wish, estimate, assumptions,
            servers=read_book(local.home), regions=region, top=top,
        )  # fmt: skip
        day = today(local.clock)
        exchanged = sorted({choice.shape.currency for choice in plan.choices[:top]} - {currency})
        at = [rate_text(other, currency, local.rates, day) for other in exchanged]
        if as_json:
            write_json(shape_plan(plan, top=top, rates=local.rates, on=day))
    if not as_json:
        _tell(plan, wish, assumptions, top=top, why=why, explain=explain)
        for sentence in at:
            remark(sentence)
    if not plan.choices:
        raise _no_plan(plan, list(job.advice()) if job else [])


command = _Plan("plan")


def _no_estimate(shape: Shape) -> Misfit:
    return Misfit("no_estimate", "no estimate of the work was asked for")


def _job(model: str, words: dict[str, Any]) -> "Job":
    # loaded here: a plan of a plain machine needs no estimate
    from teraflock.cli.workload import workload_from
    from teraflock.plan.job import Job

    if (words["epochs"] is None) != (words["samples"] is None):
        raise BadInput("`--epochs` and `--samples` belong together", hint="Or say `--steps`")
    samples = words["epochs"] * words["samples"] if words["epochs"] is not None else None
    if (words["steps"] is None) == (samples is None):
        raise BadInput("Say how much there is to do", hint="Give `--epochs` and `--samples`, or `--steps`")
    if min(each for each in (words["steps"], samples) if each is not None) <= 0:
        raise BadInput("There must be something to do", hint="Steps, epochs and samples are above zero")
    return Job(workload_from(model, words), steps=words["steps"], samples=samples)


def _assumptions(interruptions: float | None) -> Assumptions:
    assumed = shipped_assumptions()
    if interruptions is None:
        return assumed
    if not 0 <= interruptions <= 60:
        raise BadInput(f"{interruptions:g} interruptions an hour cannot be planned with", hint="Give 0 to 60")
    return replace(
        assumed,
        interruptions_per_hour=interruptions,
        interruptions_by_provider={},
        interruptions_because="as you said",
    )


def _wish(words: dict[str, Any], currency: str, rates: Rates, clock: Clock, *, job: bool) -> Wish:
    hours, monthly = words["hours"], words["hours_per_month"]
    if job and (hours is not None or monthly is not None):
        raise BadInput("A job takes the hours it takes", hint="Leave out `--hours` and `--hours-per-month`")
    if not job and (hours is None) == (monthly is None):
        raise BadInput(
            "Say what is to be planned",
            hint="A MODEL to train, or a machine for `--hours` or `--hours-per-month`",
        )
    wanted = 0.0 if job else hours if hours is not None else monthly
    if not job and (not 0 < wanted <= 100_000 or (monthly or 0) > 730):
        raise BadInput(f"A machine cannot be had for {wanted:g} hours", hint="A month has 730 hours")
    if words["disk"] < 0 or words["egress"] < 0:
        raise BadInput("A disk or what leaves the cloud cannot be less than nothing")
    if bool(words["egress"]) != bool(words["egress_price"]):
        raise BadInput(
            "`--egress` and `--egress-price` belong together", hint="No provider's price of it is known here"
        )
    gpus_min, gpus_max = parse_count(words["gpus"])
    return Wish(
        use="job" if job else "hours" if hours is not None else "monthly",
        hours=wanted,
        gpus_min=gpus_min or 1,
        gpus_max=gpus_max,
        memory_bytes_min=parse_memory_bytes(words["memory_min"]) if words["memory_min"] else None,
        memory_total_bytes_min=parse_memory_bytes(words["memory_total_min"])
        if words["memory_total_min"]
        else None,
        modes=words["mode"],
        deadline_hours=deadline_hours(words["deadline"], clock.now()) if words["deadline"] else None,
        budget_micros=_budget(words["budget"], currency, rates, clock) if words["budget"] else None,
        currency=currency,
        disk_gb=words["disk"],
        egress_gb=words["egress"],
        egress_micros_per_gb=_amount(words["egress_price"]) if words["egress_price"] else 0,
        sort=words["sort"],
    )


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
    if not 0 < hours < 1e6:
        raise BadInput(f"The deadline `{text}` is past", hint="Give a time to come")
    return hours


def _tell(plan: Plan, wish: Wish, assumptions: Assumptions, *, top: int, why: bool, explain: bool) -> None:
    shown = plan.choices[:top]
    if shown:
        click.echo(
            render(_columns(wish), [_cells(n, each) for n, each in enumerate(shown, start=1)], columns())
        )
        remark(f"\n{len(shown)} of {len(plan.choices):,} ways that do; * none is both cheaper and faster")
    for warning in plan.warnings:
        remark(f"Mind: {warning}")
    if any(choice.interruptions for choice in shown):
        rate = assumptions.interruptions_per_hour
        remark(
            f"Spot: {rate:g} interruptions an hour ({assumptions.as_of}; {assumptions.interruptions_because})"
        )
    if explain and shown:
        for line in _explained(shown[0]):
            click.echo(line)
    counts = Counter[str]()
    examples: dict[str, str] = {}
    for rejection in plan.rejected:
        counts[rejection.code] += rejection.shape.offers
        examples.setdefault(rejection.code, rejection.reason)
    if counts:
        reasons = ", ".join(f"{count:,} {code.replace('_', ' ')}" for code, count in counts.most_common())
        remark(f"Not chosen: {reasons}" + ("" if why else " (`--why` lists them)"))
    if why:
        head = [Column("GPUS"), Column("PROVIDER"), Column("INSTANCE", flexible=True, worth=7), Column("MODE", worth=6),
                Column("OFFERS", right=True, worth=5), Column("WHY NOT", flexible=True)]  # fmt: skip
        rows = [
            [f"{r.shape.gpu_count or '?'}× {r.shape.gpu or r.shape.gpu_name}", r.shape.provider, r.shape.instance_type,
             r.shape.mode or "", f"{r.shape.offers:,}", r.reason]
            for r in plan.rejected
        ]  # fmt: skip
        click.echo(render(head, rows, columns()))


def _columns(wish: Wish) -> list[Column]:
    return [
        Column("", right=True),
        Column("GPUS"),
        Column("PROVIDER"),
        Column("INSTANCE", flexible=True, worth=8),
        Column("REGION", flexible=True, worth=5),
        Column("MODE", worth=8),
        Column("TIME", right=True, worth=6),
        Column(f"{wish.currency}{'/month' if wish.use == 'monthly' else ''}", right=True),
        Column("OF WHICH", flexible=True, worth=4),
        Column("AS OF", worth=7),
    ]


def _cells(rank: int, choice: Choice) -> list[str]:
    shape = choice.shape
    others = [f"{part.what} {decimal_text(part.micros, 2)}" for part in choice.parts if part.what != "rent"]
    return [
        f"{rank}{'*' if choice.pareto else ' '}",
        gpus_text(shape.gpu_count, shape.gpu, shape.gpu_share),
        shape.provider,
        shape.instance_type,
        choice.offer.region if choice.offer else "",
        shape.mode or "",
        hours_text(choice.hours.p50),
        decimal_text(choice.cost.expected_micros, 2),
        ", ".join(others),
        shape.as_of or "unknown",
    ]


def _explained(choice: Choice) -> list[str]:
    """The arithmetic of one choice, sentence by sentence."""
    shape, cost, hours = choice.shape, choice.cost, choice.hours
    what = f"{shape.gpu_count}× {shape.gpu} at {shape.provider}, {shape.mode or 'in a mode not told'}"
    lines = [f"\n{what}, takes {hours_text(hours.p50)}."]
    if hours.p10 != hours.p90:
        lines[0] += (
            f" Eight times of ten it takes between {hours_text(hours.p10)} and {hours_text(hours.p90)}."
        )
    said = {
        "rent": "The work itself costs",
        "interruptions": "Being interrupted costs",
        "unused": "What is paid for and not used costs",
        "disk": "The disk costs",
        "egress": "What leaves the cloud costs",
    }
    lines += [
        f"{said[part.what]} {decimal_text(part.micros, 4)} {cost.currency}: {part.because}."
        for part in choice.parts
    ]
    low, high = decimal_text(cost.low_micros, 2), decimal_text(cost.high_micros, 2)
    between = f", and between {low} and {high} with the time" if low != high else ""
    lines.append(f"Together that is {decimal_text(cost.expected_micros, 4)} {cost.currency}{between}.")
    if choice.offer:
        source = f"{choice.offer.source}, {choice.offer.cited}".removesuffix(", ")
        note = f" {choice.offer.note[:1].upper()}{choice.offer.note[1:]}." if choice.offer.note else ""
        lines.append(f"The price is of {choice.offer.as_of or 'an unknown day'}, from {source}.{note}")
    return lines


def _no_plan(plan: Plan, advice: list[str]) -> NoPlan:
    """Say what stood in the way most, how near the nearest came, and what would make the job fit."""
    counts = Counter[str]()
    for rejection in plan.rejected:
        counts[rejection.code.replace("_", " ")] += rejection.shape.offers
    most = ", ".join(f"{count:,} {code}" for code, count in counts.most_common(3))
    near = [rejection for rejection in plan.rejected if rejection.code in NEAR_MISSES]
    hint = "`--why` lists every offer with its reason"
    if near:
        best = min(near, key=lambda rejection: rejection.by)
        what = f"{best.shape.gpu_count}× {best.shape.gpu} at {best.shape.provider}"
        hint = f"The nearest is {what}: {best.reason}. {hint}"
    if advice and not any(rejection.code in ("over_budget", "too_slow") for rejection in plan.rejected):
        hint += "\n      What would help: " + "\n      ".join(advice)
    return NoPlan(f"No offer does what is asked ({most or 'none is stored'})", hint=hint)


NEAR_MISSES: Final = frozenset(
    {"over_budget", "too_slow", "memory_total_too_small", "memory_too_small", "does_not_fit"}
)
