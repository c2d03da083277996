"""The meter of a project as it will be once all committed events are applied. Reads only.

For decisions that cannot wait for a loop: what a project has spent includes every committed change, even if the meter
has not read it yet.
"""

from collections.abc import Sequence

import msgspec

from teraflock.meter import store
from teraflock.meter.model import Interval, Meter
from teraflock.meter.service import after_next, run_of
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId


class Ahead(msgspec.Struct, frozen=True, kw_only=True):
    open: tuple[Meter, ...]
    """The instances that hold something."""
    closed: tuple[Interval, ...]
    """Intervals after the given number, each in its last revision."""


def ahead(tx: Transaction, project_id: ProjectId, number: int, only: Sequence[str] | None = None) -> Ahead:
    """What is open, and what was closed after the interval with this number. `only` some instances are read faster."""
    meters = {meter.instance_id: meter for meter in store.open_meters(tx, project_id, only)}
    closed = store.intervals_of_project_after(tx, project_id, number)
    if only is not None:
        closed = tuple(each for each in closed if each.instance_id in only)
    for id in store.instances_unmetered(tx, project_id, only):
        meter = meters.pop(id, None) or store.meter(tx, id) or Meter(instance_id=id, project_id=project_id)
        for change in store.changes_of(tx, id, meter.sequence):
            if change.sequence != meter.sequence + 1:
                break  # its predecessor is not committed yet
            meter, made = after_next(meter, change, run_of(tx, id, closed))
            closed += tuple(made)
        if meter.open:
            meters[id] = meter
    newest = {(each.instance_id, each.sequence): each for each in closed}
    return Ahead(open=tuple(meters[id] for id in sorted(meters)), closed=tuple(newest.values()))
