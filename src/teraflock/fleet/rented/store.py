"""All SQL about rented hosts: each is made for one instance and given back with it. Its row is kept for bills."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from teraflock.base.clock import microseconds
from teraflock.fleet.card import store as cards
from teraflock.fleet.model import Host, HostCost, HostId, HostState
from teraflock.fleet.rows import COLUMNS, HOST, STATES, host_from
from teraflock.storage.database import Transaction


def rented_outlines(tx: Transaction, site: str = "") -> tuple[Host, ...]:
    """Rented hosts that were not given back, of one site or of all, without their cards."""
    rows = tx.all(
        f"SELECT {COLUMNS} FROM host WHERE kind = 'rented' AND gone_at_us IS NULL"
        " AND (:site = '' OR site = :site) ORDER BY id",
        site=site,
    )
    return tuple(host_from(row) for row in rows)


def add_rented(tx: Transaction, host: Host) -> None:
    """Add a host for one instance, before its machine exists."""
    HOST.add(tx, host)
    for card in host.gpus:
        cards.add(tx, host.id, card)


def note_token(tx: Transaction, id: HostId, token: str, now: datetime, *, grace: timedelta) -> None:
    """Store the launch token before the provider is asked with it. A time within `grace` is kept: nothing was launched
    since."""
    tx.run(
        "UPDATE host SET token = :token, token_at_us = :now"
        " WHERE id = :id AND (token <> :token OR token_at_us <= :stale)",
        token=token,
        now=microseconds(now),
        stale=microseconds(now - grace),
        id=id,
    )


def note_ending(tx: Transaction, id: HostId, now: datetime) -> None:
    """Store when the provider is asked to end the machine, before it is asked."""
    tx.run("UPDATE host SET ending_at_us = :now WHERE id = :id", now=microseconds(now), id=id)


def note_made(tx: Transaction, id: HostId, *, remote_id: str, zone: str, now: datetime) -> None:
    """Store which machine the provider made."""
    tx.run(
        "UPDATE host SET remote_id = :remote, zone = :zone, made_at_us = :now, seen_at_us = :now WHERE id = :id",
        remote=remote_id,
        zone=zone,
        now=microseconds(now),
        id=id,
    )


def set_cost(tx: Transaction, id: HostId, cost: HostCost) -> None:
    tx.run(
        "UPDATE host SET cost_micros_per_hour = :micros, cost_currency = :currency WHERE id = :id",
        micros=cost.micros_per_hour,
        currency=cost.currency,
        id=id,
    )


def move_rented(tx: Transaction, id: HostId, region: str) -> None:
    """Prepare to rent another machine in this region. Nothing is known about that machine yet."""
    tx.run(
        "UPDATE host SET region = :region, zone = '', remote_id = '', address = '', endpoints = '', made_at_us = NULL,"
        " ending_at_us = NULL, cost_micros_per_hour = NULL WHERE id = :id",
        region=region,
        id=id,
    )


def set_endpoints(
    tx: Transaction, id: HostId, *, address: str, login: str, endpoints: str, now: datetime
) -> None:
    """Store where a rented machine can be reached."""
    tx.run(
        "UPDATE host SET address = :address, login = :login, endpoints = :endpoints, seen_at_us = :now WHERE id = :id",
        address=address,
        login=login,
        endpoints=endpoints,
        now=microseconds(now),
        id=id,
    )


def give_back(tx: Transaction, id: str, now: datetime) -> None:
    """Mark a rented host as gone. Do nothing for an own host."""
    columns = {"gone_at_us": microseconds(now)}
    STATES.move(tx, HostState.GONE, "id = :id AND kind = 'rented'", columns=columns, id=id)


def mark_rented_seen(tx: Transaction, site: str, names: Iterable[str], now: datetime) -> None:
    """Mark rented hosts that a listing of their site contains."""
    tx.run_many(
        "UPDATE host SET seen_at_us = :now WHERE site = :site AND name = :name AND kind = 'rented'",
        [(microseconds(now), site, name) for name in names],
    )
