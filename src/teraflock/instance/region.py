"""Moves a host to another region, together with its instances: prices can differ by region."""

from datetime import datetime

from msgspec.structs import replace

from teraflock.base.errors import NotFound
from teraflock.fleet import store as fleet
from teraflock.fleet.model import Host, HostId, HostKind
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.changes import InstanceChanges
from teraflock.instance.model import Instance
from teraflock.storage.database import Overtaken, Transaction
from teraflock.tenant.model import Actor


def move_host(
    tx: Transaction, changes: InstanceChanges, actor: Actor, host_ref: str, region: str, now: datetime
) -> Host:
    """Record the region, and an event for each instance of the host."""
    host = fleet.host(tx, host_ref)
    if host is None or host.kind != HostKind.OWN:
        raise NotFound(f"There is no own host `{host_ref[:80]}`", hint="`tera host list` lists them")
    if host.region == region:
        return host
    instances = _locked_with_host(tx, host.id)
    fleet.set_region(tx, host.id, region)
    for instance in instances:
        store.record_held(tx, instance, now=now, random_bytes=changes.random_bytes)
    changes.audit.record(tx, actor, "host.region", host.id, name=host.name, region=region)
    return replace(host, region=region)


def _locked_with_host(tx: Transaction, id: HostId) -> tuple[Instance, ...]:
    """Lock a host and its instances, instances first: this is the order of locks of the whole server."""
    instances = across.lock_on_host_in_all_projects(tx, id)
    fleet.lock_hosts(tx, [id])
    ids = {each.id for each in across.on_host_in_all_projects(tx, id)}
    if ids != {each.id for each in instances}:
        raise Overtaken("an instance was added or removed in the meantime")
    return instances
