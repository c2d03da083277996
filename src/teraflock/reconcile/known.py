"""What the database says about guests, for the drift loop: read again only after a change."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from teraflock.base.clock import Clock, at_microseconds
from teraflock.fleet import store as fleet
from teraflock.fleet.card import store as cards
from teraflock.instance.across import store as across
from teraflock.storage.database import Database, Row, Transaction


class KnownGuest(msgspec.Struct, frozen=True):
    """What the database says about a guest."""

    id: str
    phase: str
    wanted: str
    host: str
    busy: bool
    vcpus: int
    ram_bytes: int
    disk_bytes: int
    slots: tuple[str, ...] = ()
    """Slots of the cards it holds, sorted."""
    is_rented: bool = False
    made_at: datetime | None = None
    """When its rented machine was created."""
    remote_id: str = ""


class _Reading(msgspec.Struct, frozen=True):
    changes: Row | None
    hosts: list[Row]
    cards: list[Row]
    at: datetime
    """The minute. All is read anew in each, also after a change of the database by hand."""


class KnownGuests:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._last: dict[str, tuple[_Reading, Sequence[KnownGuest]]] = {}
        """By site."""

    def at(self, site: str) -> Sequence[KnownGuest]:
        """All guests of a site. The same object as the last time if nothing changed."""
        with self._database.read() as tx:
            reading = _Reading(
                across.changes_in_all_projects(tx),
                fleet.identities_at_site(tx, site),
                cards.held_on_site(tx, site),
                self._clock.now().replace(second=0, microsecond=0),
            )
            last, known = self._last.get(site, (None, ()))
            if reading != last:
                known = _guests(tx, site, reading.cards)
                self._last[site] = reading, known
        return known


def _guests(tx: Transaction, site: str, held: Sequence[Row]) -> Sequence[KnownGuest]:
    slots = cards.slots_by_instance(held)
    return [
        KnownGuest(
            id, phase, wanted, host, bool(busy), vcpus, ram, disk, slots.get(id, ()), not host,
            at_microseconds(made_at_us) if made_at_us is not None else None,
            remote_id,
        )
        for id, phase, wanted, host, busy, vcpus, ram, disk, made_at_us, remote_id in
        across.on_site_in_all_projects(tx, site)
    ]  # fmt: skip
