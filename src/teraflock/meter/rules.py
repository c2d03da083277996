"""Changes become intervals. No clock, no SQL: the same changes always make the same intervals.

What holds, whatever the clocks that stamped the events did:
- changes are taken in the order of their sequence, each once; the time of an event never decides the order;
- intervals of one instance follow each other without overlap, and while it is charged, without a gap;
- a change takes effect at the time of its event, but never before the change it follows: a clock that steps back
  stands still until it has caught up, and time that passed meanwhile is neither charged nor taken from anybody;
  a clock that steps forward has passed that time. What is charged in a run is so the distance between the times its
  first and last change took effect, however many changes and steps lie between;
- a change that ends a run takes effect when the tenant asked for it, or when the lost host was last seen, if that is
  earlier; it reaches back to the beginning of the run at most, behind changes that were made since, too (`recut`);
  a disk is kept until its deletion was asked for, also where it is stopped twice;
- a change that alters nothing that is charged closes nothing: a restart does not cut an interval.

RUNNING and CHANGING hold everything, STOPPED holds its disk, its snapshots and its address, all other phases are the
house's cost. A launch that fails never ran, and has no interval.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from teraflock.base.size import Size
from teraflock.instance.states import BILLABLE, Phase
from teraflock.meter.model import Change, Holding, Interval, Meter, MeterStep, Open

OVER: Final = frozenset({Phase.DELETING, Phase.GONE, Phase.FAILED})
"""Nothing comes after these but each other: when the first of them was reached is when it was over."""


def take(meter: Meter, change: Change) -> MeterStep:
    """The next change of an instance. Its sequence must be the one behind the meter's."""
    assert change.sequence == meter.sequence + 1, "changes are taken in order, each once"
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
    """When a change counts."""
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
    """What is charged from a change on; None: nothing."""
    if change.phase in BILLABLE:
        return change.held
    if change.phase is Phase.STOPPED:
        return replace(change.held, size=Size(disk_bytes=change.held.size.disk_bytes))
    return None


def recut(run: Sequence[Interval], cut_us: int, *, house_fault: bool) -> tuple[Interval, ...]:
    """What changes in a run that ended at `cut_us`: intervals behind it are empty, the last before it ends it."""
    before = [each for each in run if each.from_us < cut_us]
    behind = [each for each in run if each.from_us >= cut_us]
    changed = [replace(each, until_us=each.from_us, ends_run=False, house_fault=False) for each in behind]
    if before:
        last = replace(before[-1], until_us=cut_us, ends_run=True, house_fault=house_fault)
        changed.insert(0, last)
    return tuple(replace(each, revision=each.revision + 1) for each in changed)


def latest(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Of each interval its highest revision, in the order of time."""
    by_sequence: dict[int, Interval] = {}
    for each in intervals:
        if each.sequence not in by_sequence or by_sequence[each.sequence].revision < each.revision:
            by_sequence[each.sequence] = each
    return tuple(by_sequence[sequence] for sequence in sorted(by_sequence))


def _goes_on(opened: Open, held: Holding | None, change: Change) -> bool:
    runs = change.phase in BILLABLE
    return held == opened.held and runs == (opened.run_us is not None)


def _is_cut(opened: Open, change: Change, at_us: int) -> bool:
    """Whether a run ended before, or just when, what is open was opened: then other intervals of it are its last."""
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
    """Also where it took no time: it may have been charged for, before it was known when it ended."""
    ends_run = (
        opened.run_us is not None and change.phase not in BILLABLE and not _is_cut(opened, change, at_us)
    )
    return Interval(
        instance_id=meter.instance_id, sequence=opened.sequence, generation=opened.generation,
        project_id=meter.project_id, from_us=opened.from_us, until_us=max(at_us, opened.from_us), run_us=opened.run_us,
        ends_run=ends_run, house_fault=ends_run and change.last_seen_us is not None, held=opened.held,
    )  # fmt: skip
