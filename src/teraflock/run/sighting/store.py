"""All SQL about what runs saw of spot places."""

from collections.abc import Iterable
from typing import Final

from teraflock.run.sighting.model import MeasuredStart, SpotPeriod
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table

_SIGHTING: Final = Table("run_sighting", SpotPeriod)
_START: Final = Table("run_start", MeasuredStart)


def put(tx: Transaction, sightings: Iterable[SpotPeriod]) -> None:
    tx.run_many(_SIGHTING.upsert("place", "from_us"), [_SIGHTING.row(each) for each in sightings])


def last(tx: Transaction, place: str) -> SpotPeriod | None:
    return _SIGHTING.one(tx, "WHERE place = :place ORDER BY from_us DESC LIMIT 1", place=place)


def between(tx: Transaction, place: str, from_us: int, until_us: int) -> tuple[SpotPeriod, ...]:
    """The periods that began in a time, oldest first."""
    return _SIGHTING.all(
        tx,
        "WHERE place = :place AND from_us >= :from_us AND from_us < :until_us ORDER BY from_us",
        place=place,
        from_us=from_us,
        until_us=until_us,
    )


def put_start(tx: Transaction, start: MeasuredStart, kept: int) -> None:
    """Keep a measured start, and the newest ones of its place."""
    tx.run_many(_START.upsert("place", "at_us"), [_START.row(start)])
    tx.run(
        "DELETE FROM run_start WHERE place = :place AND at_us NOT IN"
        " (SELECT at_us FROM run_start WHERE place = :place ORDER BY at_us DESC LIMIT :kept)",
        place=start.place,
        kept=kept,
    )


def starts(tx: Transaction, place: str) -> tuple[MeasuredStart, ...]:
    return tuple(
        map(_START.value, tx.all(f"{_START.select} WHERE place = :place ORDER BY at_us", place=place))
    )
