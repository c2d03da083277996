"""All SQL about dividing cards."""

from teraflock.base.clock import at_microseconds, microseconds
from teraflock.fleet.card import store as cards
from teraflock.fleet.model import HostId, HostState
from teraflock.fleet.slicing.model import Slicing, SlicingView
from teraflock.fleet.slicing.rules import address_of
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import put_row

_COLUMNS = "host_id, address, gpu, profiles, problem, asked_at_us"


def put(tx: Transaction, slicing: Slicing) -> None:
    put_row(
        tx,
        "host_slicing",
        "host_id address",
        host_id=slicing.host_id,
        address=slicing.address,
        gpu=slicing.gpu,
        profiles=" ".join(slicing.profiles),
        problem=slicing.problem,
        asked_at_us=microseconds(slicing.asked_at),
    )


def note_problem(tx: Transaction, slicing: Slicing, problem: str) -> None:
    """Record that the host refused it, unless something else is wanted by now."""
    tx.run(
        "UPDATE host_slicing SET problem = :problem WHERE host_id = :host AND address = :address"
        " AND profiles = :profiles AND asked_at_us = :asked",
        problem=problem,
        host=slicing.host_id,
        address=slicing.address,
        profiles=" ".join(slicing.profiles),
        asked=microseconds(slicing.asked_at),
    )


def of_host(tx: Transaction, host_id: HostId) -> tuple[Slicing, ...]:
    rows = tx.all(f"SELECT {_COLUMNS} FROM host_slicing WHERE host_id = :host ORDER BY address", host=host_id)
    return tuple(map(_slicing, rows))


def host_names(tx: Transaction, site: str) -> frozenset[str]:
    """The names of the hosts at a site that have cards to divide."""
    rows = tx.all(
        "SELECT DISTINCT h.name FROM host_slicing s JOIN host h ON h.id = s.host_id WHERE h.site = :site",
        site=site,
    )
    return frozenset(row[0] for row in rows)


def views(tx: Transaction) -> tuple[SlicingView, ...]:
    """Everything that operators want, with what the cards are now."""
    names = ", ".join(f"s.{name}" for name in _COLUMNS.split(", "))
    rows = tx.all(
        f"SELECT {names}, h.site, h.name, h.state FROM host_slicing s JOIN host h ON h.id = s.host_id"
        " WHERE h.gone_at_us IS NULL ORDER BY s.host_id, s.address"
    )
    held = cards.of_divided_hosts(tx) if rows else {}
    return tuple(
        SlicingView(
            slicing=_slicing(row[:6]),
            site=row[6],
            host=row[7],
            host_state=HostState(row[8]),
            cards=tuple(card for card in held.get(row[0], ()) if address_of(card.slot) == row[1]),
        )
        for row in rows
    )


def _slicing(row: Row) -> Slicing:
    host_id, address, gpu, profiles, problem, asked_at_us = row
    return Slicing(
        host_id=HostId(host_id),
        address=address,
        gpu=gpu,
        profiles=tuple(profiles.split()),
        problem=problem,
        asked_at=at_microseconds(asked_at_us),
    )
