"""Turns changes into intervals. Pure: the same changes always produce the same intervals.

Invariants, whatever the clocks did that stamped the events:
- changes are applied in the order of their sequence, each once. The time of an event never decides the order;
- intervals of one instance do not overlap, and while it is charged they have no gap;
- a change takes effect at the time of its event, but not before the previous change. If a clock is set back, time
  stands still until the clock has caught up: nobody is charged for it. If it is set forward, the time in between
  counts. So a run is charged for the time from its first to its last change, whatever happened in between;
- a change that ends a run takes effect when the tenant asked for it, or when the lost host was last seen, if that is
  earlier. It reaches back to the start of the run at most, past changes that were made since (`recut`). A disk is kept
  until its deletion was requested, even if the instance was stopped twice;
- a change that does not alter what is charged closes no interval: a restart does not split one.

In RUNNING and CHANGING an instance holds everything. In STOPPED it holds its disk and snapshots. The operator pays for
all other phases. A launch that fails never ran and has no interval.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from teraflock.base.size import Size
from teraflock.instance.states import BILLABLE, ENDED, Phase
from teraflock.meter.model import Change, Holding, Interval, Meter, MeterStep, Open

OVER: Final = ENDED | {Phase.DELETING}
"""Terminal phases. The instance ended when it entered the first of them."""


def take(meter: Meter, change: Change) -> MeterStep:
    """Apply the next change of an instance. Its sequence must follow the meter's."""
    assert change.sequence == meter.sequence + 1, "changes are applied in order, each once"
    at_us = meter.at_us if meter.phase in OVER and change.phase in OVER else effect_us(meter, change)
    held, opened = charged(change), meter.open
    after = replace(meter, sequence=change.sequence, phase=change.phase)
    if opened and _goes_on(opened, held, change):
        return MeterStep(meter=replace(after, at_us=max(change.at_us, meter.at_us)))
    after = replace(after, at_us=at_us, open=_opened(opened, held, change, at_us))
    if opened is None:
        return MeterStep(meter=after)
    cut_us = at_us if _is_cut(opened, change, at_us) else None
    return MeterStep(meter=after, closed=_closed(meter, opened, change, at_us), cut_us=cut_us)


def effect_us(meter: Meter, change: Change) -> int:
    """When a change takes effect."""
    at_us = max(change.at_us, meter.at_us)
    if meter.open is None or change.phase in BILLABLE:
        return at_us
    ends_run = meter.open.run_us is not None and change.phase in (Phase.STOPPING, Phase.STOPPED)
    is_asked = ends_run or change.phase is Phase.DELETING
    asked_us = change.asked_at_us if is_asked else None
    said = [us for us in (asked_us, change.last_seen_us) if us is not None]
    began_us = meter.open.from_us if meter.open.run_us is None else meter.open.run_us
    return max(began_us, min([at_us, *said]))


def charged(change: Change) -> Holding | None:
    """What is charged from this change on. None: nothing."""
    if change.phase in BILLABLE:
        return change.held
    if change.phase is Phase.STOPPED:
        return replace(change.held, size=Size(disk_bytes=change.held.size.disk_bytes))
    return None


def not_by_tenant(change: Change) -> bool:
    """Whether a run that ends with this change was ended by others: its host was lost, or its cards were taken."""
    return change.last_seen_us is not None or change.preempted


def recut(run: Sequence[Interval], cut_us: int, *, operator_fault: bool) -> tuple[Interval, ...]:
    """The intervals that change if a run ended at `cut_us`: later ones become empty, and the last one before it ends
    the run."""
    before = [each for each in run if each.from_us < cut_us]
    behind = [each for each in run if each.from_us >= cut_us]
    changed = [replace(each, until_us=each.from_us, ends_run=False, operator_fault=False) for each in behind]
    if before:
        last = replace(before[-1], until_us=cut_us, ends_run=True, operator_fault=operator_fault)
        changed.insert(0, last)
    return tuple(replace(each, revision=each.revision + 1) for each in changed)


def latest(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The highest revision of each interval, ordered by time."""
    by_sequence: dict[int, Interval] = {}
    for each in intervals:
        if each.sequence not in by_sequence or by_sequence[each.sequence].revision < each.revision:
            by_sequence[each.sequence] = each
    return tuple(by_sequence[sequence] for sequence in sorted(by_sequence))


def _goes_on(opened: Open, held: Holding | None, change: Change) -> bool:
    runs = change.phase in BILLABLE
    return held == opened.held and runs == (opened.run_us is not None)


def _is_cut(opened: Open, change: Change, at_us: int) -> bool:
    """Whether a run ended no later than the open interval began. Then an earlier interval is the last of the run."""
    if opened.run_us is None or change.phase in BILLABLE:
        return False
    return opened.run_us < opened.from_us and at_us <= opened.from_us


def _opened(opened: Open | None, held: Holding | None, change: Change, at_us: int) -> Open | None:
    if held is None:
        return None
    run_us = run_sequence = None
    if change.phase in BILLABLE:
        run_us, run_sequence = at_us, change.sequence
        if opened and opened.run_us is not None:
            run_us, run_sequence = opened.run_us, opened.run_sequence
    return Open(
        sequence=change.sequence, generation=change.generation, from_us=at_us, run_us=run_us,
        run_sequence=run_sequence, held=held,
    )  # fmt: skip


def _closed(meter: Meter, opened: Open, change: Change, at_us: int) -> Interval:
    """The interval can be empty: it may have been charged before the end was known."""
    ends_run = (
        opened.run_us is not None and change.phase not in BILLABLE and not _is_cut(opened, change, at_us)
    )
    return Interval(
        instance_id=meter.instance_id, sequence=opened.sequence, generation=opened.generation,
        project_id=meter.project_id, from_us=opened.from_us, until_us=max(at_us, opened.from_us), run_us=opened.run_us,
        ends_run=ends_run, operator_fault=ends_run and not_by_tenant(change), held=opened.held,
    )  # fmt: skip
