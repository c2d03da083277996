"""The loop that sends alerts to the operator's webhook.

Alerts are events, so they are stored whatever happens here. The loop follows the events and sends the alerts in their
order, each at least once: the receiver recognises a repeated one by its `id`. Before a request the row is claimed, so
that two servers do not send the same alert. An alert that fails `ATTEMPTS_MAX` times is given up and logged.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import TeraflockError
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.fleet.alarms import ALERTS
from teraflock.reconcile import store
from teraflock.reconcile.store import Delivery
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import events_after

LOG: Final = logging.getLogger("teraflock.reconcile")
SETTLED: Final = timedelta(seconds=5)
"""Events become visible in the order of their ids only after a while: younger ones wait."""
PAGE: Final = 500
ALERTS_PER_TURN: Final = 20
ATTEMPTS_MAX: Final = 8
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 10, 3600
CLAIM: Final = timedelta(seconds=60)
"""How long a claim lasts: longer than a request may take."""


class AlertLoop:
    def __init__(self, database: Database, clock: Clock, send: Callable[[bytes], None]) -> None:
        """`send` raises `TeraflockError` if the webhook did not accept the alert."""
        self._database = database
        self._clock = clock
        self._send = send

    def turn(self) -> None:
        for _ in range(ALERTS_PER_TURN):
            claimed = self._database.write(self._claim)
            if claimed is None:
                return
            event, delivery = claimed
            try:
                self._send(body_of(event))
            except TeraflockError as error:
                self._failed(event, delivery, error)
                return
            self._keep(Delivery(event_id=event.id, attempts=0, next_at=self._clock.now()))

    def _claim(self, tx: Transaction) -> tuple[Event, Delivery] | None:
        """The next alert, if it is time to send it. Nobody else gets it while the claim lasts."""
        now = self._clock.now()
        delivery = store.delivery(tx)
        if delivery is None:  # alerts from before the webhook was set are not sent
            first = EventId(new_id("evt", now, bytes))
            store.put_delivery(tx, Delivery(event_id=first, attempts=0, next_at=now))
            return None
        if delivery.next_at > now:
            return None
        passed, event = _next_alert(tx, delivery.event_id, now - SETTLED)
        if event is None:
            if passed != delivery.event_id:
                store.put_delivery(tx, Delivery(event_id=passed, attempts=0, next_at=now))
            return None
        claim = Delivery(event_id=passed, attempts=delivery.attempts + 1, next_at=now + CLAIM)
        store.put_delivery(tx, claim)
        return event, claim

    def _failed(self, event: Event, claim: Delivery, error: TeraflockError) -> None:
        now = self._clock.now()
        if claim.attempts >= ATTEMPTS_MAX:
            LOG.error("the alert %s (%s) was not delivered: %s", event.id, event.kind, error.sentence)
            self._keep(Delivery(event_id=event.id, attempts=0, next_at=now))
            return
        LOG.warning("cannot deliver the alert %s: %s", event.id, error.sentence)
        seconds = min(PAUSE_SECONDS * 2 ** (claim.attempts - 1), PAUSE_SECONDS_MAX)
        next_at = now + timedelta(seconds=seconds)
        self._keep(Delivery(event_id=claim.event_id, attempts=claim.attempts, next_at=next_at))

    def _keep(self, delivery: Delivery) -> None:
        self._database.write(lambda tx: store.put_delivery(tx, delivery))


def _next_alert(tx: Transaction, after: EventId, until: datetime) -> tuple[EventId, Event | None]:
    """The first alert after `after`, and the last event before it."""
    passed = after
    for event in events_after(tx, after, limit=PAGE):
        if event.at > until:
            break
        if event.kind in ALERTS and not event.project:
            return passed, event
        passed = event.id
    return passed, None


def body_of(event: Event) -> bytes:
    return msgspec.json.encode(
        {
            "id": event.id,
            "at": event.at,
            "kind": event.kind,
            "subject": event.subject,
            "details": event.details,
        }
    )
