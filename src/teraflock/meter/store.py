"""All SQL of the meter. Intervals are added and never changed; the state of each instance is updated.

Reads cross tenants, because the meter processes all instances. Tenants see it only through bill/.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from teraflock.base.size import Size
from teraflock.instance.states import Phase
from teraflock.meter.model import Change, Holding, Interval, Meter, Open
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table, add_missing_row, in_list, insert_into
from teraflock.tenant.model import NO_PROJECT, ProjectId

HOLDINGS_KEPT: Final = 16_384
"""Decoded holdings in memory, about 1 KB each: costs are computed from all open ones again and again."""
SHARE_INTERVALS_MAX: Final = 50_000
"""How many of the newest intervals count for the fair share of projects: a bound on what one reading costs."""
KINDS: Final = (
    "instance.held",
    "instance.moved",
    "instance.troubled",
    "image.moved",
    "address.moved",
    "balancer.moved",
    "dataset.moved",
    "volume.moved",
)
"""Events that count in an instance's sequence. If another kind counts too, the sweep finds the gap."""
_HELD: Final = Table("meter_interval", Holding, embed={"size": ""})
_INTERVAL: Final = Table("meter_interval", Interval, embed={"held": "", "held.size": ""})
_INSERT_INTERVAL: Final = _INTERVAL.insert_with("number")
_METER: Final = (
    "instance_id", "project_id", "sequence", "at_us", "phase", "open_sequence", "generation", "from_us", "run_us",
    "run_sequence", "held",
)  # fmt: skip
_UPSERT_METER: Final = (
    f"{insert_into('meter_instance', *_METER)}"
    f" ON CONFLICT (instance_id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _METER[1:])}"
)
_SELECT_METER: Final = f"SELECT {', '.join(_METER)} FROM meter_instance"


class MeterCursor(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str = ""
    intervals: int = 0


class _Details(msgspec.Struct, kw_only=True):
    """The details of an event that the meter reads besides the holding."""

    sequence: int
    generation: int = 0
    to: str = ""
    wanted: str = ""
    asked_at_us: int | None = None
    last_seen_us: int | None = None
    preempted: bool = False


_decode_details: Final = msgspec.json.Decoder(_Details).decode
_decode_size: Final = msgspec.json.Decoder(Size).decode
_decode_holding: Final = msgspec.json.Decoder(Holding).decode


class _Gpus(msgspec.Struct, frozen=True, gc=False):
    """The one part of a holding that the fair share needs."""

    gpus: int = 0


_decode_gpus: Final = msgspec.json.Decoder(_Gpus).decode


def gpu_seconds_in_all_projects(tx: Transaction, since_us: int, now_us: int) -> dict[str, float]:
    """What each project used since a time, in GPU-seconds. Reads the newest intervals and the open ones."""
    rows = tx.all(
        "SELECT instance_id, sequence, revision, project_id, gpus, from_us, until_us FROM meter_interval"
        " WHERE number > (SELECT COALESCE(MAX(number), 0) FROM meter_interval) - :most AND until_us > :since"
        " AND run_us IS NOT NULL AND gpus > 0",
        most=SHARE_INTERVALS_MAX,
        since=since_us,
    )
    last: dict[tuple[str, int], Row] = {}
    for row in sorted(rows, key=lambda row: int(row[2])):
        last[row[0], row[1]] = row
    found: dict[str, float] = {}
    for _, _, _, project, gpus, from_us, until_us in last.values():
        found[project] = found.get(project, 0.0) + gpus * (until_us - max(from_us, since_us)) / 1e6
    for project, from_us, held in tx.all(
        "SELECT project_id, from_us, held FROM meter_instance WHERE open_sequence IS NOT NULL AND run_us IS NOT NULL"
    ):
        gpus = _decode_gpus(held).gpus
        found[project] = found.get(project, 0.0) + gpus * (now_us - max(from_us, since_us)) / 1e6
    return found


# -- changes: the events of instances ----------------------------------------------------------------------------------


def changes_after(tx: Transaction, event_id: str, *, limit: int) -> list[tuple[str, Change]]:
    """The first `limit` changes after an event, with their ids, oldest first."""
    rows: list[Row] = []
    for kind in KINDS:  # one range of the index for each kind: an IN would sort all of them
        rows += tx.all(
            "SELECT id, at_us, subject, project_id, details FROM event WHERE kind = :kind AND id > :id"
            " ORDER BY id LIMIT :limit",
            kind=kind,
            id=event_id,
            limit=limit,
        )
    rows.sort(key=lambda row: str(row[0]))
    return [(row[0], _change_from(row)) for row in rows[:limit]]


def ids_between(tx: Transaction, after: str, until: str) -> list[str]:
    """Ids of the changes after one event up to another. Reading the details would take most of the time."""
    found: list[str] = []
    for kind in KINDS:
        rows = tx.all(
            "SELECT id FROM event WHERE kind = :kind AND id > :after AND id <= :until",
            kind=kind, after=after, until=until,
        )  # fmt: skip
        found += [row[0] for row in rows]
    return sorted(found)


def changes_with(tx: Transaction, ids: Iterable[str]) -> Iterator[tuple[str, Change]]:
    for id in ids:
        row = tx.one("SELECT id, at_us, subject, project_id, details FROM event WHERE id = :id", id=id)
        if row is not None:
            yield id, _change_from(row)


def changes_of(tx: Transaction, instance_id: str, behind: int) -> list[Change]:
    """The changes of one instance with a sequence above `behind`, in order."""
    rows = tx.all(
        "SELECT id, at_us, subject, project_id, details FROM event WHERE subject = :subject ORDER BY id",
        subject=instance_id,
    )
    changes = [_change_from(row) for row in rows if '"sequence":' in row[4]]
    found = {change.sequence: change for change in changes if change.sequence > behind}
    return [found[sequence] for sequence in sorted(found)]


def instances_behind(tx: Transaction) -> list[str]:
    """Instances with a change that arrived before its predecessor."""
    return [row[0] for row in tx.all("SELECT instance_id FROM meter_behind ORDER BY instance_id")]


def instances_missed(tx: Transaction) -> list[str]:
    """Instances with more changes than were applied. Reads all instances."""
    rows = tx.all(
        "SELECT i.id FROM instance i LEFT JOIN meter_instance m ON m.instance_id = i.id"
        " WHERE i.sequence > COALESCE(m.sequence, 0)"
        # A deleted image, address or balancer has no row, so its events are counted. It has few.
        " UNION SELECT e.subject FROM event e LEFT JOIN meter_instance m ON m.instance_id = e.subject"
        " WHERE e.kind IN ('image.moved', 'address.moved', 'balancer.moved', 'dataset.moved', 'volume.moved')"
        " GROUP BY e.subject, m.sequence"
        " HAVING COUNT(*) > COALESCE(m.sequence, 0)"
        " ORDER BY 1"
    )
    return [row[0] for row in rows]


def instances_unmetered(
    tx: Transaction, project_id: ProjectId, only: Sequence[str] | None = None
) -> list[str]:
    """Instances of one project with events that are not applied yet, as far as indexes show it."""
    marks, values = in_list(only) if only else ("", {})
    among = f"IN ({marks})" if marks else "IS NOT NULL"
    if only is not None and not only:
        return []
    rows = tx.all(
        "SELECT i.id FROM instance i LEFT JOIN meter_instance m ON m.instance_id = i.id"
        " WHERE i.project_id = :project AND i.phase <> 'gone' AND i.sequence > COALESCE(m.sequence, 0)"
        f" AND i.id {among}"
        # Gone, but the meter has not read the end yet.
        " UNION SELECT m.instance_id FROM meter_instance m JOIN instance i ON i.id = m.instance_id"
        " WHERE m.project_id = :project AND m.open_sequence IS NOT NULL AND i.sequence > m.sequence"
        f" AND m.instance_id {among}"
        " UNION SELECT subject FROM event WHERE project_id = :project AND id > :id"
        " AND kind IN ('instance.moved', 'image.moved', 'address.moved', 'dataset.moved', 'volume.moved')"
        f" AND subject {among}",
        project=project_id,
        id=cursor(tx).event_id,
        **values,
    )
    return sorted(row[0] for row in rows)


def note_behind(tx: Transaction, instance_ids: Iterable[str]) -> None:
    for each in instance_ids:
        add_missing_row(tx, "meter_behind", instance_id=each)


def note_caught_up(tx: Transaction, instance_ids: Iterable[str]) -> None:
    tx.run_many("DELETE FROM meter_behind WHERE instance_id = :id", [(each,) for each in instance_ids])


def _change_from(row: Row) -> Change:
    _, at_us, subject, project, details = row
    said = _decode_details(details)
    is_asked = said.to != Phase.STOPPED or said.wanted in ("stopped", "gone")
    return Change(
        instance_id=subject, project_id=project, sequence=said.sequence, generation=said.generation, at_us=at_us,
        phase=Phase(said.to), held=_holding(details), asked_at_us=said.asked_at_us if is_asked else None,
        last_seen_us=said.last_seen_us, preempted=said.preempted,
    )  # fmt: skip


@lru_cache(maxsize=HOLDINGS_KEPT)
def _holding(text: str) -> Holding:
    """A holding from JSON. The fields of its size are at the same level as its own."""
    held = _decode_holding(text)
    return msgspec.structs.replace(held, size=_decode_size(text), labels=held.labels or "{}")


# -- the state of each instance ---------------------------------------------------------------------------------------


def cursor(tx: Transaction) -> MeterCursor:
    row = tx.one("SELECT event_id, intervals FROM meter_cursor WHERE name = 'meter'")
    return MeterCursor(event_id=row[0], intervals=row[1]) if row else MeterCursor()


def hold(tx: Transaction) -> MeterCursor:
    """Lock the cursor and return it. A second writer waits here before it assigns numbers."""
    tx.run("UPDATE meter_cursor SET name = name WHERE name = 'meter'")
    return cursor(tx)


def set_cursor(tx: Transaction, cursor: MeterCursor) -> None:
    tx.run(
        "UPDATE meter_cursor SET event_id = :event_id, intervals = :intervals WHERE name = 'meter'",
        event_id=cursor.event_id,
        intervals=cursor.intervals,
    )


def meter(tx: Transaction, instance_id: str) -> Meter | None:
    row = tx.one(f"{_SELECT_METER} WHERE instance_id = :id", id=instance_id)
    return _meter_from(row) if row else None


def sequence_taken(tx: Transaction, instance_id: str) -> int:
    row = tx.one("SELECT sequence FROM meter_instance WHERE instance_id = :id", id=instance_id)
    return int(row[0]) if row else 0


def open_meters(
    tx: Transaction, project_id: ProjectId | None = None, only: Sequence[str] | None = None
) -> list[Meter]:
    """The instances that hold something now, in one project or in all, or only some of a project."""
    if only is not None:
        return _open_meters_of(tx, project_id or NO_PROJECT, only)
    if project_id is None:
        rows = tx.all(f"{_SELECT_METER} WHERE open_sequence IS NOT NULL ORDER BY project_id, instance_id")
    else:
        rows = tx.all(
            f"{_SELECT_METER} WHERE project_id = :project AND open_sequence IS NOT NULL ORDER BY instance_id",
            project=project_id,
        )
    return [_meter_from(row) for row in rows]


def projects_with_open_meters(tx: Transaction) -> set[ProjectId]:
    """The projects that hold something now."""
    rows = tx.all("SELECT DISTINCT project_id FROM meter_instance WHERE open_sequence IS NOT NULL")
    return {row[0] for row in rows}


def _open_meters_of(tx: Transaction, project_id: ProjectId, ids: Sequence[str]) -> list[Meter]:
    if not ids:
        return []
    marks, values = in_list(ids)
    rows = tx.all(
        f"{_SELECT_METER} WHERE instance_id IN ({marks}) AND project_id = :project"
        " AND open_sequence IS NOT NULL ORDER BY instance_id",
        project=project_id,
        **values,
    )
    return [_meter_from(row) for row in rows]


def keep_meters(tx: Transaction, meters: Iterable[Meter]) -> None:
    tx.run_many(_UPSERT_METER, [_meter_row(each) for each in meters])


def _meter_row(meter: Meter) -> tuple[Any, ...]:
    now = meter.open
    front = (meter.instance_id, meter.project_id, meter.sequence, meter.at_us, str(meter.phase))
    if now is None:
        return (*front, None, 0, 0, None, None, "{}")
    held = msgspec.json.encode(dict(zip(_HELD.columns, _HELD.row(now.held), strict=True))).decode()
    return (*front, now.sequence, now.generation, now.from_us, now.run_us, now.run_sequence, held)


def _meter_from(row: Row) -> Meter:
    id, project, sequence, at_us, phase, opened, generation, from_us, run_us, run_sequence, held = row
    now = None
    if opened is not None:
        now = Open(
            sequence=opened, generation=generation, from_us=from_us, run_us=run_us, run_sequence=run_sequence,
            held=_holding(held),
        )  # fmt: skip
    return Meter(
        instance_id=id, project_id=project, sequence=sequence, at_us=at_us, phase=Phase(phase), open=now,
    )  # fmt: skip


# -- intervals ---------------------------------------------------------------------------------------------------------


def add_intervals(tx: Transaction, first_number: int, intervals: Iterable[Interval]) -> int:
    """Add intervals, numbered from `first_number` on. Return how many."""
    rows = [(number, *_INTERVAL.row(each)) for number, each in enumerate(intervals, start=first_number)]
    tx.run_many(_INSERT_INTERVAL, rows)
    return len(rows)


def intervals_of_run(tx: Transaction, instance_id: str, first_sequence: int) -> tuple[Interval, ...]:
    """All revisions of the intervals of the current run, which began with this change."""
    return _INTERVAL.all(
        tx,
        "WHERE instance_id = :id AND sequence >= :first ORDER BY sequence, revision",
        id=instance_id,
        first=first_sequence,
    )


def intervals_after(tx: Transaction, number: int, *, limit: int) -> tuple[Interval, ...]:
    """In the order in which they were added."""
    return _INTERVAL.all(
        tx, "WHERE number > :number ORDER BY number LIMIT :limit", number=number, limit=limit
    )


def intervals_of_project_after(tx: Transaction, project_id: ProjectId, number: int) -> tuple[Interval, ...]:
    return _INTERVAL.all(
        tx,
        "WHERE number > :number AND project_id = :project ORDER BY number",
        number=number,
        project=project_id,
    )


def intervals_of(tx: Transaction, instance_id: str) -> Iterator[Interval]:
    return map(
        _INTERVAL.value,
        tx.each(f"{_INTERVAL.select} WHERE instance_id = :id ORDER BY number", id=instance_id),
    )
