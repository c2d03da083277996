from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from teraflock.base.events import Event
from teraflock.base.ids import EventId
from teraflock.storage.database import ConstraintBroken, Database, Transaction
from teraflock.storage.events import events_after, record_event

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def event(number: int) -> Event:
    return Event(
        id=EventId(f"ev_{number:04}"),
        at=NOW + timedelta(seconds=number),
        kind="offers.imported",
        subject="imp_1",
        details={"rows": 2**60, "source": "Füße 100% ':x'", "share": 0.5, "partial": True, "note": None},
    )


def test_events_come_back_in_order_and_page_by_page(store: Database) -> None:
    for number in (3, 1, 2):
        store.write(partial(record_event, event=event(number)))
    with store.read() as tx:
        assert events_after(tx, None, limit=2) == (event(1), event(2))
        assert events_after(tx, event(2).id, limit=2) == (event(3),)
        assert events_after(tx, event(3).id, limit=2) == ()


def test_events_of_a_rolled_back_work_are_not_stored(store: Database) -> None:
    def records_twice(tx: Transaction) -> None:
        record_event(tx, event(1))
        record_event(tx, event(1))

    with pytest.raises(ConstraintBroken):
        store.write(records_twice)
    with store.read() as tx:
        assert events_after(tx, None, limit=10) == ()
