"""All SQL of readings. Rows are added and never changed.

Reads cross tenants, except for those with a project.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from teraflock.base.clock import DAY_US
from teraflock.instance.driver import Sent
from teraflock.meter.reading.model import MeterReading
from teraflock.network.balancer import store as balancers
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, in_list, number
from teraflock.tenant.model import NO_PROJECT, ProjectId

_READING: Final = Table("meter_reading", MeterReading)


def keep(tx: Transaction, counters: Iterable[Sent], at_us: int, *, bytes_min: int = 1) -> int:
    """Store the readings that are higher than before, for balancers, and instances that run or are stopping. Return
    how many.

    Less than `bytes_min` stays in the counter until the next reading.

    What an instance sends before it first runs is stored once it runs, so a failed launch costs nothing.
    """
    news = [each for each in counters if each.bytes - _highest(tx, each) >= bytes_min]
    if not news:
        return 0
    first = number = _hold(tx)
    for each in news:
        before, sequence = _highest(tx, each), _sequence_of_run(tx, each.instance_id)
        if sequence is not None and each.bytes > before:
            number += 1
            _add(tx, MeterReading(
                number=number, instance_id=each.instance_id, sequence=sequence, epoch=each.epoch, bytes=each.bytes,
                bytes_before=before, at_us=at_us,
            ))  # fmt: skip
    tx.run("UPDATE meter_cursor SET intervals = :number WHERE name = 'readings'", number=number)
    return number - first


def newest_number(tx: Transaction) -> int:
    return number(tx, "SELECT intervals FROM meter_cursor WHERE name = 'readings'")


def days(
    tx: Transaction,
    from_us: int,
    until_us: int,
    *,
    project_id: ProjectId = NO_PROJECT,
    only: Sequence[str] = (),
) -> list[tuple[str, int]]:
    """Instances and the days (UTC, since 1970) with readings: of all projects, one project or only some instances."""
    values: dict[str, object] = {"from_us": from_us, "until": until_us}
    select = f"SELECT DISTINCT r.instance_id, r.at_us / {DAY_US} FROM meter_reading r"
    time = "r.at_us >= :from_us AND r.at_us < :until"
    sources = [f"{select} WHERE {time}"]
    if project_id:
        values["project"] = project_id
        sources = [
            f"{select} JOIN instance i ON i.id = r.instance_id AND i.project_id = :project WHERE {time}",
            # A deleted balancer has no row, but the meter knows its project.
            f"{select} JOIN meter_instance m ON m.instance_id = r.instance_id AND m.project_id = :project"
            f" WHERE {time} AND r.instance_id LIKE 'lbr%'",
        ]
    if only:
        marks, ids = in_list(only)
        values |= ids
        sources = [f"{each} AND r.instance_id IN ({marks})" for each in sources]
    rows = tx.all(
        f"{' UNION '.join(sources)} {'' if project_id else 'GROUP BY 1, 2'} ORDER BY 1, 2", **values
    )
    return [(row[0], int(row[1])) for row in rows]


def of_day(tx: Transaction, instance_id: str, day: int) -> list[MeterReading]:
    found = _READING.all(
        tx,
        "WHERE instance_id = :id AND at_us >= :from_us AND at_us < :until ORDER BY number",
        id=instance_id,
        from_us=day * DAY_US,
        until=(day + 1) * DAY_US,
    )
    return list(found)


def _add(tx: Transaction, reading: MeterReading) -> None:
    _READING.add(tx, reading)


def _hold(tx: Transaction) -> int:
    """Lock the row with the newest number and return the number. A second writer waits here and reads it again."""
    tx.run("UPDATE meter_cursor SET name = name WHERE name = 'readings'")
    return newest_number(tx)


def _highest(tx: Transaction, counter: Sent) -> int:
    row = tx.one(
        "SELECT MAX(bytes) FROM meter_reading WHERE instance_id = :id AND epoch = :epoch",
        id=counter.instance_id,
        epoch=counter.epoch,
    )
    return int(row[0]) if row and row[0] is not None else 0


def _sequence_of_run(tx: Transaction, instance_id: str) -> int | None:
    """The sequence of its newest event. None if it is unknown here, or is an instance that does not run."""
    row = tx.one(
        "SELECT sequence FROM instance WHERE id = :id AND running_since_us IS NOT NULL", id=instance_id
    )
    return int(row[0]) if row else balancers.sequence_in_all_projects(tx, instance_id)
