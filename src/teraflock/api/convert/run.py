"""Converters of runs. Values of secrets are in no answer."""

from base64 import b64decode
from binascii import Error as BinasciiError
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import asdict

from teraflock.api.convert.shape import wish_from
from teraflock.base.clock import LATEST
from teraflock.base.errors import BadInput
from teraflock.bill.costs import InstanceCost
from teraflock.instance.orders import bid_and_limit
from teraflock.run.checkpoint import measured_save_seconds
from teraflock.run.model import Checkpoint, Run, RunEstimate, RunSpec
from teraflock.run.nodes import nodes_of
from teraflock.run.pieces import UploadPiece
from teraflock.run.rules import RunCost, is_over, step_seconds, usual_step_seconds
from teraflock.run.states import RunPhase
from teraflock.wire.run import (
    PiecesRequest,
    RunAnswer,
    RunCheckpointAnswer,
    RunDetails,
    RunEstimateAnswer,
    RunProgressAnswer,
    RunRequest,
    UploadRequest,
)


def spec_from(request: RunRequest) -> RunSpec:
    same = ("command", "image", "site", "provider", "type", "region", "burst", "mode", "setup", "data", "offer",
            "requirements", "environment", "outputs", "checkpoints", "keep", "attempts_max", "nodes", "priority",
            "deadline", "budget_micros")  # fmt: skip
    given = {name: getattr(request, name) for name in same}
    estimate = RunEstimate(**asdict(request.estimate)) if request.estimate else None
    rents = bool(request.type or request.provider)
    bid, limit = request.bid_micros_per_hour, request.max_price_micros_per_hour
    bid, limit = bid_and_limit(request.mode, rents=rents, bid=bid, limit=limit)
    given |= {"bid_micros_per_hour": bid, "price_limit_micros_per_hour": limit}
    return RunSpec(**given, shape=wish_from(request.shape), workdir=request.workdir or "", estimate=estimate)


def content_from(request: UploadRequest) -> bytes:
    try:
        return b64decode(request.content, validate=True)
    except BinasciiError:
        raise BadInput("The content is not base64", hint="Encode the bytes of the piece as base64") from None


def pieces_from(request: PiecesRequest) -> tuple[UploadPiece, ...]:
    if len(request.digests) != len(request.sizes_bytes):
        raise BadInput("Every piece needs a digest and a size", hint="Make both lists equally long")
    return tuple(map(UploadPiece, request.digests, request.sizes_bytes))


def run_answer(run: Run, cost: RunCost, now: datetime, *, simulated: bool) -> RunAnswer:
    return RunAnswer(**_fields(run, cost, now, simulated))


def run_details(
    run: Run, kept: tuple[Checkpoint, ...], cost: RunCost, now: datetime, *, simulated: bool
) -> RunDetails:
    shown = tuple(
        RunCheckpointAnswer(
            name=each.name, size_bytes=each.size_bytes, digest=each.digest, pulled_at=each.pulled_at
        )
        for each in kept
    )
    losses = run.progress.losses if run.progress else ()
    return RunDetails(
        **_fields(run, cost, now, simulated),
        save_seconds=measured_save_seconds(kept),
        checkpoints=shown,
        losses=losses,
    )


def run_cost(costs: Sequence[InstanceCost]) -> RunCost:
    """The sum over the instances of a run."""
    return RunCost(
        currency=costs[0].currency if costs else "",
        micros=sum(each.micros for each in costs),
        micros_per_hour=sum(each.micros_per_hour for each in costs),
    )


def _fields(run: Run, cost: RunCost, now: datetime, simulated: bool) -> Mapping[str, Any]:
    spec = run.spec
    ends = run.ended_at or now
    progress = _progress(run)
    ends_at = _ends_at(run, progress)
    return {
        **{name: getattr(run, name) for name in (
            "id", "name", "project_id", "wanted", "attempt", "instance_id", "instances", "exit_code", "problem",
            "log_bytes", "outputs_bytes", "created_at", "created_by", "since", "running_since", "ended_at",
            "save_every_seconds",
        )},
        "state": run.phase,
        "command": spec.command,
        "image": spec.image,
        "environment": spec.environment,
        "secrets": spec.secrets,
        "data": spec.data,
        "sweep": run.sweep,
        "parameters": spec.parameters,
        "attempts_max": spec.attempts_max,
        "nodes": spec.nodes,
        "node_instances": tuple(each.instance_id for each in nodes_of(run)),
        "progress": progress,
        "deadline": spec.deadline,
        "late": spec.deadline is not None and ends > spec.deadline,
        "budget_micros": spec.budget_micros,
        "estimate": RunEstimateAnswer(**asdict(spec.estimate)) if spec.estimate else None,
        "cost_micros": cost.micros,
        "ends_at": ends_at,
        "expected_cost_micros": _expected_micros(cost, ends_at, now),
        "currency": cost.currency,
        "simulated": simulated,
    }  # fmt: skip


def _ends_at(run: Run, progress: RunProgressAnswer | None) -> datetime | None:
    """By its progress, otherwise by the estimate of all of its work. None: unknown, or it is not running."""
    if run.phase != RunPhase.RUNNING or run.running_since is None:
        return None
    if progress is not None and progress.ends_at is not None:
        return progress.ends_at
    hours = run.spec.estimate.hours if run.spec.estimate else None
    return min(run.running_since + timedelta(hours=hours[1]), LATEST) if hours else None


def _expected_micros(cost: RunCost, ends_at: datetime | None, now: datetime) -> int | None:
    if ends_at is None or not cost.currency:
        return None
    return cost.micros + round(cost.micros_per_hour * max(0.0, (ends_at - now) / timedelta(hours=1)))


def _progress(run: Run) -> RunProgressAnswer | None:
    seen = run.progress
    if seen is None:
        return None
    seconds = step_seconds(run)
    ends_at = None
    if seconds is not None and seen.of is not None and seen.at is not None and not is_over(run):
        left = max(0, seen.of - seen.step) * seconds
        ends_at = min(seen.at + timedelta(seconds=min(left, 3e9)), LATEST)
    return RunProgressAnswer(
        step=seen.step,
        of=seen.of,
        loss=seen.loss,
        memory_bytes=seen.memory_bytes,
        step_seconds=usual_step_seconds(run),
        ends_at=ends_at,
        at=seen.at,
    )
