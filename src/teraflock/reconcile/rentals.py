"""Records rented hosts: the machine, its endpoints, and what it costs the operator.

The cost is in the host's row. Every change is an `instance.cost` event of the installation, which tenants do
not see. `drift.py` and `instances.py` decide; this module only records.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec
from msgspec.structs import replace

from teraflock.base.clock import microseconds
from teraflock.base.events import Details, RandomBytes, new_event
from teraflock.bill.margin.service import note_rental
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host, HostCost, HostId
from teraflock.fleet.rented import store as rented_hosts
from teraflock.instance.driver import Made, Readiness, Sighting
from teraflock.instance.model import SSH_PORT, Instance, Operation
from teraflock.instance.steps import StepDone
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event


def matched(
    sightings: Iterable[Sighting], remote_ids: Mapping[str, str], hosts: Mapping[str, str] | None = None
) -> tuple[dict[str, Sighting], list[Sighting]]:
    """Return one sighting for each instance, and the extra machines.

    A lost response may leave a second machine for an instance. `remote_ids` has the right one by instance. An own host
    may still have a copy of an instance that is elsewhere now. `hosts` has the right host by instance; empty: any.
    """
    seen: dict[str, Sighting] = {}
    spare: list[Sighting] = []
    for each in sightings:
        right = remote_ids.get(each.instance_id, "")
        is_other = right and each.made is not None and each.made.remote_id != right
        is_astray = hosts and hosts.get(each.instance_id) not in (None, "", each.host)
        if is_other or is_astray:
            spare.append(each)
        else:
            seen[str(each.instance_id)] = each
    return seen, spare


def note(
    tx: Transaction,
    before: Instance,
    after: Instance,
    done: StepDone,
    now: datetime,
    random_bytes: RandomBytes,
) -> None:
    """Record what a step learned about the rented host of an instance."""
    if before.spec.rental is None or before.host_id is None:
        return
    if done.made is not None:
        note_machine(tx, before, before.host_id, done.made, now, random_bytes)
    if after.candidate != before.candidate or after.host_id is None:
        note_end(tx, before, before.host_id, now, random_bytes)
    if done.readiness is not None and after.host_id is not None:
        _reached(tx, after.host_id, done.readiness, now)


def note_machine(
    tx: Transaction, instance: Instance, host_id: HostId, made: Made, now: datetime, random_bytes: RandomBytes
) -> None:
    """Record which machine a rented host is and what it costs, if that is new."""
    host = fleet.host(tx, host_id)
    assert host is not None, "a host's row outlives its instance"
    is_new = host.remote_id != made.remote_id
    if is_new or host.zone != made.zone:
        rented_hosts.note_made(tx, host_id, remote_id=made.remote_id, zone=made.zone, now=now)
    if made.price_micros_per_hour is None:
        return
    cost = HostCost(micros_per_hour=made.price_micros_per_hour, currency=made.currency)
    if is_new or (host.cost != cost and not _is_ending(instance)):
        since = _since(made, host, now) if is_new else now
        rented_hosts.set_cost(tx, host_id, cost)
        known = replace(host, remote_id=made.remote_id, zone=made.zone)
        _tell(tx, instance, known, cost, now, random_bytes, since=since)


def _since(made: Made, host: Host, now: datetime) -> datetime:
    """From when on a new machine costs money. Never before it was asked for or after now: the provider's clock may be
    wrong, and some providers tell whole minutes."""
    asked_at = min(host.token_at or now, now)
    return min(max(made.since or asked_at, asked_at), now)


def _is_ending(instance: Instance) -> bool:
    """Whether the machine is being given back. Its cost has ended, although it may still be listed."""
    progress = instance.progress
    return progress is not None and (progress.undoing or progress.operation == Operation.DELETE)


def note_end(
    tx: Transaction,
    instance: Instance,
    host_id: HostId,
    now: datetime,
    random_bytes: RandomBytes,
    *,
    since: datetime | None = None,
) -> None:
    """Record that a machine costs nothing from a time on (None: now). Do nothing if that is recorded, or none was
    ever known."""
    host = fleet.host(tx, host_id)
    if host is not None and host.remote_id and host.cost is not None and host.cost.micros_per_hour:
        over = replace(host.cost, micros_per_hour=0)
        rented_hosts.set_cost(tx, host_id, over)
        _tell(tx, instance, host, over, now, random_bytes, since=since)


def _tell(
    tx: Transaction,
    instance: Instance,
    host: Host,
    cost: HostCost,
    now: datetime,
    random_bytes: RandomBytes,
    *,
    since: datetime | None = None,
) -> None:
    details: Details = {
        "host": host.id,
        "site": host.site,
        "type": host.type,
        "region": host.region,
        "zone": host.zone,
        "remote_id": host.remote_id,
        "cost_micros_per_hour": cost.micros_per_hour,
        "cost_currency": cost.currency,
        "from_us": microseconds(since or now),
    }
    record_event(tx, new_event("instance.cost", instance.id, now, random_bytes, details))
    note_rental(
        tx,
        host_id=host.id,
        instance_id=instance.id,
        project_id=instance.project_id,
        micros_per_hour=cost.micros_per_hour,
        currency=cost.currency,
        now=now,
        since=since,
    )


def _reached(tx: Transaction, host_id: HostId, readiness: Readiness, now: datetime) -> None:
    found = {port: (each.address, each.port) for port, each in sorted(readiness.endpoints.items())}
    rented_hosts.set_endpoints(
        tx,
        host_id,
        address=found[SSH_PORT][0] if SSH_PORT in found else "",
        login=readiness.user,
        endpoints=msgspec.json.encode(found).decode(),
        now=now,
    )
