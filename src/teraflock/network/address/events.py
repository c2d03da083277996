"""Events of public addresses. The meter reads them like the events of a stopped instance.

An address counts as one GB of snapshots, and `mode` marks it as an address, so that it has its own price.
"""

from collections.abc import Callable
from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.base.quantities import GIB
from teraflock.network.address.model import PublicAddress
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

RandomBytes = Callable[[int], bytes]


def record_taken(tx: Transaction, address: PublicAddress, now: datetime, random_bytes: RandomBytes) -> None:
    """Record that the project has the address from now on."""
    record_event(tx, _event(address, "stopped", 1, now, random_bytes))


def record_released(
    tx: Transaction, address: PublicAddress, now: datetime, random_bytes: RandomBytes
) -> None:
    """Record that the project has the address until now."""
    record_event(tx, _event(address, "deleting", 2, now, random_bytes))


def _event(address: PublicAddress, to: str, sequence: int, now: datetime, random_bytes: RandomBytes) -> Event:
    return Event(
        id=EventId(new_id("evt", now, random_bytes)), at=now, kind="address.moved", subject=address.id,
        project=address.project_id,
        details={
            "sequence": sequence, "generation": 0, "name": f"address {address.address}", "from": "", "to": to,
            "snapshots_bytes": GIB, "member": address.created_by, "mode": "address", "labels": "{}",
            "asked_at_us": microseconds(now),
        },
    )  # fmt: skip
