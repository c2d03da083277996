"""What a run will need, take and cost, before it starts: from a trace of its script, or from the hours that you expect.

An estimate is an interval. Where nothing is known, the plan says so and shows only the price per hour.
"""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput, TeraflockError
from teraflock.base.money import amount_text
from teraflock.base.quantities import bytes_text, count_text
from teraflock.cli.facts import write_facts
from teraflock.cli.output import remark
from teraflock.cli.run.request import RunWords
from teraflock.cli.table import shortened
from teraflock.run.sweep import combinations
from teraflock.wire.quote import QuoteRequest
from teraflock.wire.run import RunEstimateBody, RunRequest
from teraflock.words.money import hourly_text
from teraflock.words.text import duration_text, time_text

if TYPE_CHECKING:
    from teraflock.cli.run.workdir import Packed
    from teraflock.client import Client
    from teraflock.run.guard import CostDistribution
    from teraflock.wire.quote import QuoteAnswer
    from teraflock.wire.shape import ShapeRequest


SETUP_COLUMNS: Final = 80


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    request: RunRequest
    """With the chosen GPU and the estimate."""
    micros_per_hour: int = 0
    currency: str = ""
    shape: str = ""
    notes: tuple[str, ...] = ()
    distribution: "CostDistribution | None" = None
    """With mode `spot` and a deadline: what it may cost, and how often it is late."""
    runs: int = 1
    """How many runs a sweep makes of it."""


def planned(client: "Client", request: RunRequest, words: RunWords) -> RunPlan:
    from teraflock.cli.run.estimate import expected

    estimates, notes = expected(client, words)
    if estimates and estimates[0].gpu and words.chooses_gpu:
        plan = _cheapest(client, request, estimates, notes)
    else:
        plan = _plan(request, _quote(client, request), next(iter(estimates), None), notes)
    runs = len(combinations(words.sweep)) if words.sweep else 1
    return _with_distribution(client, replace(plan, runs=runs))


def _with_distribution(client: "Client", plan: RunPlan) -> RunPlan:
    """For spot with a deadline: simulate what the server will do."""
    request, estimate = plan.request, plan.request.estimate
    if request.mode != "spot" or request.deadline is None or estimate is None or not estimate.hours:
        return plan
    steady = _quote(client, replace(request, mode="on-demand"))
    try:
        from teraflock.run.guard import distribution
    except ModuleNotFoundError:
        return replace(plan, notes=(*plan.notes, "The cost distribution needs numpy: pip install numpy"))
    left = (request.deadline - SystemClock().now()).total_seconds() / 3600
    price = steady.micros_per_hour * request.nodes if steady else 0
    spread = distribution(estimate.hours, left, plan.micros_per_hour, price)
    if spread.steady:  # not the price of spot alone: some of the work may be done on demand
        estimate = replace(estimate, cost_micros=(spread.p10, spread.p50, spread.p90))
    return replace(plan, request=replace(request, estimate=estimate), distribution=spread)


def _cheapest(
    client: "Client", request: RunRequest, estimates: list[RunEstimateBody], notes: tuple[str, ...]
) -> RunPlan:
    """The cheapest GPU that meets the deadline; of those that miss it, the fastest."""
    plans = []
    for estimate in estimates:
        on = replace(request, shape=replace(request.shape, gpu=estimate.gpu, gpus=1))
        plans.append(_plan(on, _quote(client, on), estimate, notes))
    return min(plans, key=_rank)


def _rank(plan: RunPlan) -> tuple[bool, float, float]:
    estimate = plan.request.estimate
    hours = estimate.hours[1] if estimate and estimate.hours else float("inf")
    cost = estimate.cost_micros[1] if estimate and estimate.cost_micros else float("inf")
    late = plan.request.deadline is not None and not meets_deadline(plan)
    return late, hours if late else cost, hours


def _plan(
    request: RunRequest, quote: "QuoteAnswer | None", estimate: RunEstimateBody | None, notes: tuple[str, ...]
) -> RunPlan:
    per_hour = quote.micros_per_hour * request.nodes if quote else 0
    if estimate is not None and quote is not None and estimate.hours:
        cost = tuple(round(each * per_hour) for each in estimate.hours)
        estimate = replace(estimate, cost_micros=(cost[0], cost[1], cost[2]), currency=quote.currency)
    return RunPlan(
        request=replace(request, estimate=estimate),
        micros_per_hour=per_hour,
        currency=quote.currency if quote else "",
        shape=_quoted_text(quote) if quote else _asked_text(request.shape),
        notes=notes,
    )


def _quote(client: "Client", request: RunRequest) -> "QuoteAnswer | None":
    asked = QuoteRequest(
        shape=request.shape, mode=request.mode, site=request.site, type=request.type, region=request.region
    )
    try:
        return client.quotes.get(asked)
    except BadInput:
        raise
    except TeraflockError:
        return None  # no price book, or the user may not see prices


def _asked_text(shape: "ShapeRequest") -> str:
    """Without a quote: only what was asked for is known."""
    sizes = {"RAM": shape.ram_bytes, "disk": shape.disk_bytes}
    parts = [
        shape.name,
        f"{shape.gpus or 1}× {shape.gpu}" if shape.gpu else "",
        f"{shape.vcpus} vCPU" if shape.vcpus else "",
        *(f"{bytes_text(size)} {what}" for what, size in sizes.items() if size),
    ]
    return ", ".join(filter(None, parts))


def _quoted_text(quote: "QuoteAnswer") -> str:
    cards = f"{quote.gpus}× {quote.gpu}, " if quote.gpus else ""
    return (
        f"{cards}{quote.vcpus} vCPU, {bytes_text(quote.ram_bytes)} RAM, {bytes_text(quote.disk_bytes)} disk"
    )


def meets_deadline(plan: RunPlan, now: Any = None) -> bool:
    """Whether even the upper end of the estimate is before the deadline."""
    estimate, deadline = plan.request.estimate, plan.request.deadline
    if deadline is None or estimate is None or not estimate.hours:
        return True
    left = (deadline - (now or SystemClock().now())).total_seconds() / 3600
    return estimate.hours[2] <= left


def lines(plan: RunPlan, files: "Packed | None") -> Iterator[tuple[str, str]]:
    """The plan as names and values."""
    request, estimate = plan.request, plan.request.estimate
    yield "command", shlex.join(request.command)
    if files is not None:
        links = f", {count_text(files.skipped, 'link')} skipped" if files.skipped else ""
        folder = f" of `{files.folder}`" if files.folder not in ("", ".") else ""
        yield "files", f"{count_text(files.files, 'file')}{folder}, {bytes_text(len(files.content))}{links}"
    yield "sweep", f"{plan.runs} runs; time and cost are those of one" if plan.runs > 1 else ""
    yield "nodes", str(request.nodes) if request.nodes > 1 else ""
    yield "instance", plan.shape
    yield "mode", request.mode if request.mode != "on-demand" else ""
    unknown = "" if plan.currency else "unknown"
    yield "price", hourly_text(plan.micros_per_hour, plan.currency) if plan.micros_per_hour else unknown
    if estimate and estimate.step_seconds:
        low, middle, high = estimate.step_seconds
        yield "step time", f"{middle:.4g} s ({low:.4g} to {high:.4g})"
    if estimate and estimate.memory_bytes:
        yield "GPU memory", bytes_text(estimate.memory_bytes)
    yield (
        "time",
        _interval([_hours_text(each) for each in estimate.hours]) if estimate and estimate.hours else "",
    )
    if estimate and estimate.cost_micros and estimate.cost_micros[2]:
        yield "cost", _interval([amount_text(each, estimate.currency) for each in estimate.cost_micros])
    if plan.distribution is not None and plan.distribution.steady:
        yield "on demand", amount_text(plan.distribution.steady, plan.currency)
    yield "egress", _egress_text(request)
    if request.deadline:
        met = "" if meets_deadline(plan) else " (the estimate does not meet it)"
        yield "deadline", f"{time_text(request.deadline)} UTC{met}"
    if plan.distribution is not None:
        yield "late", f"{plan.distribution.late_share:.1%} of {plan.distribution.simulations} simulations"
    yield "budget", _budget_text(plan)
    yield "secrets", ", ".join(request.secrets)
    yield "setup", _setup_text(request)


def _setup_text(request: RunRequest) -> str:
    wanted = [
        each for text in (request.requirements, request.setup) for each in text.split("\n") if each.strip()
    ]
    return f"{shortened('; '.join(wanted), SETUP_COLUMNS)} (cached after the first run)" if wanted else ""


def show(plan: RunPlan, files: "Packed | None") -> None:
    write_facts(lines(plan, files))
    for note in plan.notes:
        remark(note)


def as_data(plan: RunPlan, files: "Packed | None") -> dict[str, Any]:
    """The plan for JSON. Values of secrets are left out."""
    shown = msgspec.to_builtins(replace(plan.request, secrets={}))
    return {
        **shown,
        "secrets": list(plan.request.secrets),
        "files": files.files if files else 0,
        "upload_bytes": len(files.content) if files else 0,
        "runs": plan.runs,
        "micros_per_hour": plan.micros_per_hour,
        "currency": plan.currency,
        "meets_deadline": meets_deadline(plan),
        "distribution": msgspec.to_builtins(plan.distribution),
        "notes": list(plan.notes),
    }


def _budget_text(plan: RunPlan) -> str:
    request, estimate = plan.request, plan.request.estimate
    if not request.budget_micros:
        return ""
    together = " for all of them together" if plan.runs > 1 else ""
    cost = estimate.cost_micros[1] * plan.runs if estimate and estimate.cost_micros else 0
    less = (
        f", less than the expected {amount_text(cost, plan.currency)}" if cost > request.budget_micros else ""
    )
    return f"{amount_text(request.budget_micros, plan.currency)}{together}{less}"


def _egress_text(request: RunRequest) -> str:
    """What the provider may charge for checkpoints that are copied to the server. Empty: nothing, or unknown."""
    from teraflock.catalog.costs import costs_of
    from teraflock.run.checkpoint import (
        checkpoint_every_seconds,
        copied_bytes,
        expected_loss_hours,
        save_seconds,
    )

    estimate, price = request.estimate, costs_of(request.provider).egress
    if price is None or estimate is None or not estimate.hours or not estimate.memory_bytes:
        return ""
    size = estimate.memory_bytes  # a checkpoint has weights and optimizer, which are less
    every = checkpoint_every_seconds(expected_loss_hours(request.mode), save_seconds(size))
    copied = copied_bytes(estimate.hours[2], size, every)
    cost = amount_text(round(copied / 1e9 * price.micros), price.currency)
    return f"up to {bytes_text(copied)} of checkpoints, {cost}; none with a bucket in the region"


def _interval(texts: list[str]) -> str:
    low, middle, high = texts
    return middle if low == middle == high else f"{middle} ({low} to {high})"


def _hours_text(hours: float) -> str:
    return duration_text(max(1, round(hours * 3600))) if hours < 48 else f"{hours / 24:.1f} days"
