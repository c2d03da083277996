"""Alerts reach the webhook in order, at least once, with a limited number of attempts. On both databases."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from teraflock.base.clock import FixedClock
from teraflock.base.errors import Unavailable
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.reconcile.alerts import ATTEMPTS_MAX, CLAIM, PAUSE_SECONDS_MAX, AlertLoop
from teraflock.storage.database import Database
from teraflock.storage.events import record_event

START = datetime(2026, 11, 16, tzinfo=UTC)


class Receiver:
    """Collects alerts, or refuses them."""

    def __init__(self) -> None:
        self.got: list[int] = []
        self.tries = 0
        self.refuses = False

    def send(self, body: bytes) -> None:
        self.tries += 1
        if self.refuses:
            raise Unavailable("it is closed")
        self.got.append(msgspec.json.decode(body)["details"]["number"])


def happens(
    database: Database, clock: FixedClock, number: int, kind: str = "host.xid", project: str = ""
) -> None:
    clock.move(timedelta(seconds=1))
    id = EventId(new_id("evt", clock.now(), lambda size: bytes([number]) * size))
    event = Event(
        id=id, at=clock.now(), kind=kind, subject="hst_1", project=project, details={"number": number}
    )
    database.write(lambda tx: record_event(tx, event))


def test_alerts_after_the_start_are_sent_in_order_and_once(database: Database) -> None:
    clock, receiver = FixedClock(START), Receiver()
    happens(database, clock, 1)
    clock.move(timedelta(minutes=1))
    loop = AlertLoop(database, clock, receiver.send)
    loop.turn()
    happens(database, clock, 2)
    happens(database, clock, 3, kind="instance.launch")
    happens(database, clock, 4, project="prj_1")
    happens(database, clock, 5, kind="host.hot")
    loop.turn()
    assert receiver.got == [], "an event with a lower id may still be committed"
    clock.move(timedelta(minutes=1))
    loop.turn()
    AlertLoop(database, clock, receiver.send).turn()
    assert receiver.got == [2, 5]


def test_a_closed_webhook_is_tried_again_later_and_given_up_in_the_end(database: Database) -> None:
    clock, receiver = FixedClock(START), Receiver()
    loop = AlertLoop(database, clock, receiver.send)
    loop.turn()
    happens(database, clock, 1)
    happens(database, clock, 2)
    receiver.refuses = True
    clock.move(timedelta(minutes=1))
    loop.turn()
    loop.turn()
    assert receiver.tries == 1
    for _ in range(ATTEMPTS_MAX - 1):
        clock.move(timedelta(seconds=PAUSE_SECONDS_MAX))
        loop.turn()
    receiver.refuses = False
    clock.move(timedelta(seconds=1))
    loop.turn()
    assert (receiver.tries, receiver.got) == (ATTEMPTS_MAX + 1, [2])


def test_a_server_that_dies_while_sending_sends_again(database: Database) -> None:
    clock, receiver = FixedClock(START), Receiver()
    AlertLoop(database, clock, receiver.send).turn()
    happens(database, clock, 1)
    clock.move(timedelta(minutes=1))

    def dies(body: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        AlertLoop(database, clock, dies).turn()
    other = AlertLoop(database, clock, receiver.send)
    other.turn()
    assert receiver.got == [], "the first server may still be sending it"
    clock.move(CLAIM)
    other.turn()
    assert receiver.got == [1]
