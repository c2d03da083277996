"""What the meter will say of a project once it has read all events there are. Reads, and takes nothing.

For decisions that must not wait for a loop: whoever asks what a project has spent is told of every change that is
committed, however far behind the meter is.
"""

import msgspec

from teraflock.meter import store
from teraflock.meter.model import Interval, Meter
from teraflock.meter.service import run_of, taken_next
from teraflock.storage.database import Transaction


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    open: tuple[Meter, ...]
    """The instances that hold something."""
    closed: tuple[Interval, ...]
    """Behind the number that was asked for; of each its last revision."""


def ahead(tx: Transaction, project_id: str, number: int) -> Ahead:
    """What is open, and what was closed behind the interval with this number."""
    meters = {meter.instance_id: meter for meter in store.open_meters(tx, project_id)}
    closed = store.intervals_of_project_after(tx, project_id, number)
    for id in store.instances_unmetered(tx, project_id):
        meter = meters.pop(id, None) or store.meter(tx, id) or Meter(instance_id=id, project_id=project_id)
        for change in store.changes_of(tx, id, meter.sequence):
            if change.sequence != meter.sequence + 1:
                break  # the one before is not there yet
            meter, made = taken_next(meter, change, run_of(tx, id, closed))
            closed += made
        if meter.open:
            meters[id] = meter
    newest = {(each.instance_id, each.sequence): each for each in closed}
    return Ahead(open=tuple(meters[id] for id in sorted(meters)), closed=tuple(newest.values()))
