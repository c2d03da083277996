"""Events of balancers. The meter reads them like the events of an instance.

A balancer holds nothing that is charged by time: its phase `starting` is free. Its events say to whom its traffic is
charged, and at the prices of which host.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import microseconds
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.network.balancer import store
from teraflock.network.balancer.model import Balancer
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

RandomBytes = Callable[[int], bytes]
EXISTS: Final = "starting"
"""Phases of the meter. Neither is charged."""
ENDED: Final = "gone"


def record_place(tx: Transaction, balancer: Balancer, now: datetime, random_bytes: RandomBytes) -> Balancer:
    """Record that the balancer is at its host from now on, and return it with its new sequence."""
    return _record(tx, balancer, EXISTS, now, random_bytes)


def record_end(tx: Transaction, balancer: Balancer, now: datetime, random_bytes: RandomBytes) -> None:
    _record(tx, balancer, ENDED, now, random_bytes)


def _record(
    tx: Transaction, balancer: Balancer, to: str, now: datetime, random_bytes: RandomBytes
) -> Balancer:
    after = replace(balancer, sequence=balancer.sequence + 1)
    event = Event(
        id=EventId(new_id("evt", now, random_bytes)), at=now, kind="balancer.moved", subject=balancer.id,
        project=balancer.project_id,
        details={
            "sequence": after.sequence, "generation": 0, "name": f"balancer {balancer.name}", "from": "", "to": to,
            "host": balancer.host_id, "region": store.region_of_host(tx, balancer.host_id),
            "member": balancer.created_by, "labels": "{}", "asked_at_us": microseconds(now),
        },
    )  # fmt: skip
    record_event(tx, event)
    store.set_place(tx, after)
    return after
