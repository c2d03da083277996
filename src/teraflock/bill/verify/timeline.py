"""Computes what an instance used and when, from its events only.

It implements the rules in the head of meter/rules.py a second time, on whole lists instead of a carried state.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from teraflock.bill.verify.row import Said

Held = tuple[Any, ...]

RUNS = ("running", "changing")
HELD_NAMES = (
    "gpu", "gpus", "vcpus", "ram_bytes", "disk_bytes", "snapshots_bytes", "mode", "card_micros_per_hour", "host",
    "region", "name", "member", "labels",
)  # fmt: skip


class Span(msgspec.Struct, kw_only=True):
    """A period in which usage did not change."""

    sequence: int
    generation: int
    project_id: str
    held: Held
    from_us: int
    until_us: int | None = None
    """None if the span is open."""
    run_us: int | None
    ends_run: bool = False
    operator_fault: bool = False
    revision: int = 0

    def says(self, name: str) -> Any:
        return self.held[HELD_NAMES.index(name)]


def told(events: Sequence[Said]) -> list[Said]:
    """The changes among events, ordered by sequence, without duplicates, up to the first gap."""
    by_sequence = {said["sequence"]: said for said in events if "sequence" in said}
    made: list[Said] = []
    while len(made) + 1 in by_sequence:
        made.append(by_sequence[len(made) + 1])
    return made


def spans(changes: Sequence[Said]) -> tuple[list[Span], list[Span]]:
    """All spans in their final form, and every row that the meter must have written, in order."""
    finished: list[Span] = []
    written: list[Span] = []
    run: list[Span] = []  # the spans of the current run
    now: Span | None = None
    clock_us = 0
    for said in changes:
        clock_us = max(clock_us, said["at_us"])
        held, runs = _held(said), said["to"] in RUNS
        if now is not None and now.held == held and (now.run_us is not None) == runs:
            continue
        if now is not None:
            clock_us = _end_us(now, said, clock_us, runs)
            _finish(
                now, run, clock_us, ends_run=now.run_us is not None and not runs, said=said, written=written
            )
            finished.append(now)
            if not runs:
                run = []
        now = None
        if held is not None:
            begun_us = run[0].run_us if runs and run else (clock_us if runs else None)
            now = Span(
                sequence=said["sequence"], generation=said["generation"], project_id=said["project_id"], held=held,
                from_us=clock_us, run_us=begun_us,
            )  # fmt: skip
            run = [*run, now] if runs else []
    return ([*finished, now] if now else finished), written


def _end_us(now: Span, said: Said, clock_us: int, runs: bool) -> int:
    if runs:
        return clock_us
    times = [clock_us]
    stops = said["to"] == "stopping" or (
        said["to"] == "stopped" and said.get("wanted") in ("stopped", "gone")
    )
    asked = said["to"] == "deleting" or (stops and now.run_us is not None)
    if asked and said.get("asked_at_us") is not None:
        times.append(said["asked_at_us"])
    if said.get("last_seen_us") is not None:
        times.append(said["last_seen_us"])
    return max(min(times), now.from_us if now.run_us is None else now.run_us)


def _finish(
    now: Span, run: Sequence[Span], end_us: int, *, ends_run: bool, said: Said, written: list[Span]
) -> None:
    """Close a span. If its run ended before the span started, write the earlier spans of the run again."""
    lost = said.get("last_seen_us") is not None or said.get("preempted", False)
    if not ends_run or end_us > now.from_us or now.from_us == now.run_us:
        now.until_us, now.ends_run, now.operator_fault = end_us, ends_run, ends_run and lost
    else:
        earlier = [span for span in run if span is not now]
        enders = [span for span in earlier if span.from_us < end_us]
        for span in earlier:
            if enders and span is enders[-1]:
                span.until_us, span.ends_run, span.operator_fault = end_us, True, lost
            elif span.from_us >= end_us:
                span.until_us, span.ends_run, span.operator_fault = span.from_us, False, False
            else:
                continue
            span.revision += 1
            written.append(msgspec.structs.replace(span))
        now.until_us = now.from_us
    written.append(msgspec.structs.replace(now))


def _held(said: Said) -> Held | None:
    if said["to"] not in ("running", "changing", "stopped"):
        return None
    stopped = said["to"] == "stopped"
    return (
        "" if stopped else said.get("gpu", ""),
        *(0 if stopped else said.get(name, 0) for name in ("gpus", "vcpus", "ram_bytes")),
        said.get("disk_bytes", 0), said.get("snapshots_bytes", 0),
        said.get("mode", "on-demand"), said.get("card_micros_per_hour", 0), said.get("host", ""),
        said.get("region", ""),
        said.get("name", ""), said.get("member", ""), said.get("labels") or "{}",
    )  # fmt: skip
