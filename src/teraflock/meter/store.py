"""All SQL of the meter. Intervals are only ever added; where an instance stands is rewritten.

Reads here cross tenants: the meter takes the changes of all instances. What a tenant sees goes through bill/.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from teraflock.base.size import Size
from teraflock.instance.states import Phase
from teraflock.meter.model import Change, Holding, Interval, Meter, Open
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table

KINDS: Final = ("instance.held", "instance.moved", "instance.troubled", "image.moved")
"""Events that count in an instance's sequence. Another kind that does is found as the one that was missing."""
_HELD: Final = Table("meter_interval", Holding, embed={"size": ""})
_INTERVAL: Final = Table("meter_interval", Interval, embed={"held": "", "held.size": ""})
_INSERT_INTERVAL: Final = _INTERVAL.insert_with("number")
_METER: Final = (
    "instance_id", "project_id", "sequence", "at_us", "phase", "open_sequence", "generation", "from_us", "run_us",
    "run_sequence", "held",
)  # fmt: skip
_UPSERT_METER: Final = (
    f"INSERT INTO meter_instance ({', '.join(_METER)}) VALUES ({', '.join(':' + name for name in _METER)})"
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


_decode_details: Final = msgspec.json.Decoder(_Details).decode
_decode_size: Final = msgspec.json.Decoder(Size).decode
_decode_holding: Final = msgspec.json.Decoder(Holding).decode


# -- changes: the events of instances ----------------------------------------------------------------------------------


def changes_after(tx: Transaction, event_id: str, *, limit: int) -> list[tuple[str, Change]]:
    """The first `limit` changes behind an event, with their ids, oldest first."""
    rows: list[Row] = []
    for kind in KINDS:  # one range of the index each: an IN would sort them all
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
    """Of changes behind one event up to another: without what they say, which is where the time goes."""
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
    """The changes of one instance whose sequence is above `behind`, in its order."""
    rows = tx.all(
        "SELECT id, at_us, subject, project_id, details FROM event WHERE subject = :subject ORDER BY id",
        subject=instance_id,
    )
    changes = [_change_from(row) for row in rows if '"sequence":' in row[4]]
    found = {change.sequence: change for change in changes if change.sequence > behind}
    return [found[sequence] for sequence in sorted(found)]


def instances_behind(tx: Transaction) -> list[str]:
    """Instances that wait for a change whose forerunner was not there yet."""
    return [row[0] for row in tx.all("SELECT instance_id FROM meter_behind ORDER BY instance_id")]


def instances_missed(tx: Transaction) -> list[str]:
    """Instances that have had more changes than were taken. Looks at every instance there is."""
    rows = tx.all(
        "SELECT i.id FROM instance i LEFT JOIN meter_instance m ON m.instance_id = i.id"
        " WHERE i.sequence > COALESCE(m.sequence, 0)"
        # Of an image that is deleted there is no row, so its events are counted: it has few.
        " UNION SELECT e.subject FROM event e LEFT JOIN meter_instance m ON m.instance_id = e.subject"
        " WHERE e.kind = 'image.moved' GROUP BY e.subject, m.sequence HAVING COUNT(*) > COALESCE(m.sequence, 0)"
        " ORDER BY 1"
    )
    return [row[0] for row in rows]


def instances_unmetered(tx: Transaction, project_id: str) -> list[str]:
    """Instances of one project with events that were not taken yet, as far as that shows without looking at all."""
    rows = tx.all(
        "SELECT i.id FROM instance i LEFT JOIN meter_instance m ON m.instance_id = i.id"
        " WHERE i.project_id = :project AND i.phase <> 'gone' AND i.sequence > COALESCE(m.sequence, 0)"
        # Gone, and the meter has not heard of its end.
        " UNION SELECT m.instance_id FROM meter_instance m JOIN instance i ON i.id = m.instance_id"
        " WHERE m.project_id = :project AND m.open_sequence IS NOT NULL AND i.sequence > m.sequence"
        " UNION SELECT subject FROM event WHERE project_id = :project AND id > :id"
        " AND kind IN ('instance.moved', 'image.moved')",
        project=project_id,
        id=cursor(tx).event_id,
    )
    return sorted(row[0] for row in rows)


def note_behind(tx: Transaction, instance_ids: Iterable[str]) -> None:
    tx.run_many(
        "INSERT INTO meter_behind (instance_id) VALUES (:id) ON CONFLICT (instance_id) DO NOTHING",
        [(each,) for each in instance_ids],
    )


def note_caught_up(tx: Transaction, instance_ids: Iterable[str]) -> None:
    tx.run_many("DELETE FROM meter_behind WHERE instance_id = :id", [(each,) for each in instance_ids])


def _change_from(row: Row) -> Change:
    _, at_us, subject, project, details = row
    said = _decode_details(details)
    is_asked = said.to != Phase.STOPPED or said.wanted in ("stopped", "gone")
    return Change(
        instance_id=subject, project_id=project, sequence=said.sequence, generation=said.generation, at_us=at_us,
        phase=Phase(said.to), held=_holding(details), asked_at_us=said.asked_at_us if is_asked else None,
        last_seen_us=said.last_seen_us,
    )  # fmt: skip


def _holding(text: str) -> Holding:
    """A holding from JSON, in which the fields of its size are beside its own."""
    held = _decode_holding(text)
    return msgspec.structs.replace(held, size=_decode_size(text), labels=held.labels or "{}")


# -- where each instance stands ----------------------------------------------------------------------------------------


def cursor(tx: Transaction) -> MeterCursor:
    row = tx.one("SELECT event_id, intervals FROM meter_cursor WHERE name = 'meter'")
    return MeterCursor(event_id=row[0], intervals=row[1]) if row else MeterCursor()


def hold(tx: Transaction) -> MeterCursor:
    """The cursor, for a work that will move it: whoever comes second waits here, before anything is numbered."""
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


def open_meters(tx: Transaction, project_id: str | None = None) -> list[Meter]:
    """Of all projects or one: the instances that hold something now."""
    if project_id is None:
        rows = tx.all(f"{_SELECT_METER} WHERE open_sequence IS NOT NULL ORDER BY project_id, instance_id")
    else:
        rows = tx.all(
            f"{_SELECT_METER} WHERE project_id = :project AND open_sequence IS NOT NULL ORDER BY instance_id",
            project=project_id,
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
    """Add them with the numbers from `first_number` on; how many they were."""
    rows = [(number, *_INTERVAL.row(each)) for number, each in enumerate(intervals, start=first_number)]
    tx.run_many(_INSERT_INTERVAL, rows)
    return len(rows)


def intervals_of_run(tx: Transaction, instance_id: str, first_sequence: int) -> list[Interval]:
    """All revisions of the intervals of the present run, which began with this change."""
    rows = tx.all(
        f"{_INTERVAL.select} WHERE instance_id = :id AND sequence >= :first ORDER BY sequence, revision",
        id=instance_id,
        first=first_sequence,
    )
    return [_INTERVAL.value(row) for row in rows]


def intervals_after(tx: Transaction, number: int, *, limit: int) -> list[Interval]:
    """In the order they were made."""
    rows = tx.all(
        f"{_INTERVAL.select} WHERE number > :number ORDER BY number LIMIT :limit", number=number, limit=limit
    )
    return [_INTERVAL.value(row) for row in rows]


def intervals_of_project_after(tx: Transaction, project_id: str, number: int) -> list[Interval]:
    rows = tx.all(
        f"{_INTERVAL.select} WHERE number > :number AND project_id = :project ORDER BY number",
        number=number,
        project=project_id,
    )
    return [_INTERVAL.value(row) for row in rows]


def intervals_of(tx: Transaction, instance_id: str) -> Iterator[Interval]:
    return map(
        _INTERVAL.value,
        tx.each(f"{_INTERVAL.select} WHERE instance_id = :id ORDER BY number", id=instance_id),
    )
