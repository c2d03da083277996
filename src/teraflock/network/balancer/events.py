"""Events of balancers. The meter reads them like the events of an instance.

A balancer holds nothing that is charged by time: its phase `starting` is free. Its events say to whom its traffic is
charged, and at the prices of which host.
"""

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from teraflock.base.events import Details, RandomBytes, moved_event
from teraflock.network.balancer import store
from teraflock.network.balancer.model import Balancer
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

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
    details: Details = {"name": f"balancer {balancer.name}", "sequence": after.sequence, "to": to}
    details |= {"host": balancer.host_id, "region": store.region_of_host(tx, balancer.host_id)}
    record_event(tx, moved_event("balancer", balancer, now, random_bytes, details))
    store.set_place(tx, after)
    return after
