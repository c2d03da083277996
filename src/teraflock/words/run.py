"""Runs as text: table columns and details."""

import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from teraflock.base.money import amount_text
from teraflock.base.quantities import bytes_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import SIMULATED, age_text, duration_text, time_text

if TYPE_CHECKING:
    from teraflock.wire.run import RunAnswer, RunCheckpointAnswer, RunDetails

OVER: Final = ("done", "failed", "cancelled")
"""The states in which a run has ended."""


def fields(now: datetime) -> "Fields[RunAnswer]":
    return (
        Field("NAME", lambda each: each.name, flexible=True),
        Field("STATE", state_text),
        Field("SWEEP", sweep_text, worth=5),
        Field("PROGRESS", progress_text, worth=8),
        Field("ATTEMPT", lambda each: str(each.attempt), right=True, worth=4),
        Field("COST", cost_text, right=True, worth=7),
        Field("AGE", lambda each: age_text(each.created_at, now), right=True, worth=5),
        Field("COMMAND", lambda each: shlex.join(each.command), flexible=True, worth=6),
        Field("PROBLEM", lambda each: each.problem, flexible=True, worth=5),
    )


def state_text(run: "RunAnswer") -> str:
    words = [run.state]
    if run.exit_code:
        words.append(f"(exit {run.exit_code})")
    if run.wanted == "cancelled" and run.state not in OVER:
        words.append("(cancelling)")
    if run.late:
        words.append("(late)")
    if run.simulated:
        words.append(SIMULATED)
    return " ".join(words)


def ending_text(run: "RunAnswer") -> str:
    """`heron-3f2a` is done, or `heron-3f2a` failed (exit 4)."""
    return f"`{run.name}` {'' if run.state == 'failed' else 'is '}{state_text(run)}"


def sweep_text(run: "RunAnswer") -> str:
    values = " ".join(f"{name}={value}" for name, value in run.parameters.items())
    return f"{run.sweep}: {values}" if run.sweep else ""


def progress_text(run: "RunAnswer") -> str:
    seen = run.progress
    if seen is None:
        return ""
    of = f"/{seen.of} ({100 * seen.step // seen.of}%)" if seen.of else ""
    loss = f", loss {seen.loss:.4g}" if seen.loss is not None else ""
    return f"step {seen.step}{of}{loss}"


def cost_text(run: "RunAnswer") -> str:
    return amount_text(run.cost_micros, run.currency) if run.cost_micros else ""


def facts(run: "RunDetails", now: datetime) -> Iterator[tuple[str, str]]:
    """All details of a run as names and values. Missing values are empty."""
    yield "problem", run.problem
    yield "id", run.id
    yield "command", shlex.join(run.command)
    yield "image", run.image
    yield "data", ", ".join(run.data)
    yield "sweep", sweep_text(run)
    yield "environment", " ".join(run.environment)
    yield "secrets", ", ".join(run.secrets)
    yield "attempt", f"{run.attempt} of at most {run.attempts_max}"
    yield "instance", run.instance_id if run.nodes == 1 else ""
    yield "nodes", ", ".join(run.node_instances) or str(run.nodes) if run.nodes > 1 else ""
    yield "progress", progress_text(run)
    yield "step time", step_text(run)
    yield "GPU memory", memory_text(run)
    yield "expected end", _at(run.ends_at)
    yield "deadline", _at(run.deadline)
    yield "run time", time_used_text(run, now)
    yield "cost", cost_text(run)
    yield "expected cost", _expected_cost_text(run)
    yield "estimated cost", estimated_cost_text(run)
    yield "budget", amount_text(run.budget_micros, run.currency) if run.budget_micros else ""
    yield (
        "outputs",
        "" if run.outputs_bytes is None else f"{bytes_text(run.outputs_bytes)} (`tera run cp {run.name} .`)",
    )
    yield "checkpoints", ", ".join(map(checkpoint_text, run.checkpoints))
    yield "saving", saving_text(run)
    yield "created", _at(run.created_at)
    yield "ended", _at(run.ended_at)


def checkpoint_text(kept: "RunCheckpointAnswer") -> str:
    return f"{kept.name} ({bytes_text(kept.size_bytes)})"


def saving_text(run: "RunDetails") -> str:
    """How long a save takes, and how often the command was told to save."""
    took = run.save_seconds
    words = (
        [] if took is None else [f"{took:.3g} s measured" if took >= 0.01 else "less than 0.01 s measured"]
    )
    if run.save_every_seconds is not None:
        words.append(f"every {duration_text(run.save_every_seconds)} advised")
    return ", ".join(words)


def step_text(run: "RunAnswer") -> str:
    """The measured time of a step, beside the estimated one."""
    measured = run.progress.step_seconds if run.progress else None
    expected = run.estimate.step_seconds if run.estimate else None
    words = [f"{measured:.4g} s measured"] if measured is not None else []
    if expected:
        low, middle, high = expected
        words.append(f"{middle:.4g} s estimated ({low:.4g} to {high:.4g})")
        if measured is not None and middle > 0:
            words.append(f"{100 * (measured / middle - 1):+.0f}%")
    return ", ".join(words)


def memory_text(run: "RunAnswer") -> str:
    """The measured GPU memory, beside the estimated one."""
    measured = run.progress.memory_bytes if run.progress else None
    expected = run.estimate.memory_bytes if run.estimate else None
    words = [f"{bytes_text(measured)} measured"] if measured is not None else []
    if expected:
        words.append(f"{bytes_text(expected)} estimated")
        if measured is not None:
            words.append(f"{100 * (measured / expected - 1):+.0f}%")
    return ", ".join(words)


def live_text(run: "RunAnswer") -> str:
    """One line about a run that is being followed: how far it is, when it ends and what it will have cost."""
    ends = f"ends {time_text(run.ends_at)} UTC" if run.ends_at else ""
    cost = _expected_cost_text(run) or cost_text(run)
    return ", ".join(filter(None, (f"{run.name}: {run.state}", progress_text(run), ends, cost)))


def _expected_cost_text(run: "RunAnswer") -> str:
    expected = run.expected_cost_micros
    return f"{amount_text(expected, run.currency)} at its end" if expected is not None else ""


def estimated_cost_text(run: "RunAnswer") -> str:
    cost = run.estimate.cost_micros if run.estimate else None
    if not cost or run.estimate is None:
        return ""
    low, middle, high = (amount_text(each, run.estimate.currency) for each in cost)
    return f"{middle} ({low} to {high})"


def time_used_text(run: "RunAnswer", now: datetime) -> str:
    if run.running_since is None:
        return ""
    seconds = int(((run.ended_at or now) - run.running_since) / timedelta(seconds=1))
    hours = run.estimate.hours if run.estimate else None
    more = f", {duration_text(int(hours[1] * 3600))} estimated" if hours else ""
    return duration_text(max(0, seconds)) + more


def _at(at: datetime | None) -> str:
    return f"{time_text(at)} UTC" if at else ""
