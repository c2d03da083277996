"""Events of public addresses. The meter reads them like the events of a stopped instance.

An address counts as one GB of snapshots, and `mode` marks it as an address, so that it has its own price.
"""

from datetime import datetime

from teraflock.base.events import Details, Event, RandomBytes, moved_event
from teraflock.base.quantities import GIB
from teraflock.network.address.model import PublicAddress
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event


def record_taken(tx: Transaction, address: PublicAddress, now: datetime, random_bytes: RandomBytes) -> None:
    """Record that the project has the address from now on."""
    record_event(tx, _event(address, "stopped", 1, now, random_bytes))


def record_released(
    tx: Transaction, address: PublicAddress, now: datetime, random_bytes: RandomBytes
) -> None:
    """Record that the project has the address until now."""
    record_event(tx, _event(address, "deleting", 2, now, random_bytes))


def _event(address: PublicAddress, to: str, sequence: int, now: datetime, random_bytes: RandomBytes) -> Event:
    details: Details = {"name": f"address {address.address}", "sequence": sequence, "to": to}
    details |= {"snapshots_bytes": GIB, "mode": "address"}
    return moved_event("address", address, now, random_bytes, details)
