"""All SQL about what runs saw of spot places."""

from collections.abc import Iterable
from typing import Final

from teraflock.run.sighting.model import SpotPeriod
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table

_SIGHTING: Final = Table("run_sighting", SpotPeriod)


def put(tx: Transaction, sightings: Iterable[SpotPeriod]) -> None:
    tx.run_many(_SIGHTING.upsert("place", "from_us"), [_SIGHTING.row(each) for each in sightings])


def last(tx: Transaction, place: str) -> SpotPeriod | None:
    row = tx.one(f"{_SIGHTING.select} WHERE place = :place ORDER BY from_us DESC LIMIT 1", place=place)
    return _SIGHTING.value(row) if row else None


def between(tx: Transaction, place: str, from_us: int, until_us: int) -> tuple[SpotPeriod, ...]:
    """The periods that began in a time, oldest first."""
    rows = tx.all(
        f"{_SIGHTING.select} WHERE place = :place AND from_us >= :from_us AND from_us < :until_us ORDER BY from_us",
        place=place,
        from_us=from_us,
        until_us=until_us,
    )
    return tuple(map(_SIGHTING.value, rows))
