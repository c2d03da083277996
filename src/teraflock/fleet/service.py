"""The fleet service for the edges: hosts, and the shapes that they provide."""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from ipaddress import IPv4Network

from msgspec.structs import replace

from teraflock.base.clock import LATEST, Clock
from teraflock.base.errors import BadInput, Conflict, NotFound, Refused
from teraflock.base.kept import Kept
from teraflock.base.size import Size
from teraflock.fleet import store
from teraflock.fleet.card import store as cards
from teraflock.fleet.fragmentation import CardCapacity, capacities
from teraflock.fleet.label.service import set_labels
from teraflock.fleet.model import Host, HostId, HostKind, HostState, Idle
from teraflock.fleet.placement import Policy
from teraflock.fleet.shapes import NamedShape, count_free, named_shapes
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, ProjectId

ALLOW_OUT_MAX = 100
NEVER_OUT = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")))
IDLE_MIN = timedelta(minutes=10)
"""A shorter pause is normal: a card waits for data, for the next step, or for its user to log in."""


class FleetService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        policy: Policy | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        super().__init__(database, clock, random_bytes)
        self._policy = policy or Policy()
        self._shapes: Kept[list[NamedShape]] = Kept(clock)

    def hosts(self, *, after: str = "", limit: int, kind: HostKind | None = HostKind.OWN) -> tuple[Host, ...]:
        with self._database.read() as tx:
            return store.hosts(tx, after=after, limit=limit, kind=kind)

    def kinds(self) -> tuple[Host, ...]:
        """One host for all that have the same size and cards."""
        with self._database.read() as tx:
            return store.kinds_of_hosts(tx)

    def places(
        self, need: Size, *, apart: Sequence[str], host: str = "", site: str = ""
    ) -> list[tuple[str, str]]:
        """The regions of the own hosts that have the cards for an instance, free or not. Hosts in `apart` have a row of
        their own with their id."""
        with self._database.read() as tx:
            return store.places(tx, need.gpu, need.gpus, apart=apart, host=host, site=site)

    def host(self, ref: str) -> Host:
        with self._database.read() as tx:
            return found_host(tx, ref)

    def capacity(self) -> tuple[CardCapacity, ...]:
        """The cards of all hosts that take new instances: how many are free, and how they are spread."""
        with self._database.read() as tx:
            return capacities(cards.blocks(tx))

    def names(self, ids: Sequence[HostId]) -> Mapping[HostId, str]:
        with self._database.read() as tx:
            return store.names(tx, ids)

    def own_host(self, ref: str) -> Host:
        """A host that is not rented."""
        with self._database.read() as tx:
            return own_host(tx, ref)

    def set_state(
        self, actor: Actor, ref: str, state: HostState, *, drain_at: datetime | None = None
    ) -> Host:
        """`draining` accepts no new instances. At `drain_at`, a loop moves those that may move. `ready` accepts
        instances again. A host that is away gets the state when it returns."""
        if drain_at is not None and (state != HostState.DRAINING or drain_at > LATEST):
            raise BadInput("Only a draining host has a deadline", hint="Set `state` to `draining`")

        def work(tx: Transaction) -> Host:
            host = own_host(tx, ref)
            if host.state == HostState.GONE:
                raise Conflict(
                    f"`{host.name}` was removed", hint="A host that joins again takes instances again"
                )
            store.set_drained(tx, host.id, state == HostState.DRAINING, drain_at=drain_at)
            at = {"drain_at": drain_at.isoformat()} if drain_at else {}
            self._audit.record(tx, actor, f"host.{state}", host.id, name=host.name, **at)
            return found_host(tx, host.id)

        return self._database.write(work)

    def set_labels(self, actor: Actor, ref: str, changes: Mapping[str, str | None]) -> Host:
        """Set labels of a host, or remove those with the value None."""
        return self._database.write(lambda tx: set_labels(tx, self._audit, actor, own_host(tx, ref), changes))

    def set_allow_out(self, actor: Actor, ref: str, networks: Sequence[str]) -> Host:
        """Set the private networks that the guests of a host may reach. A loop applies it to the host."""
        wanted = checked_networks(networks)

        def work(tx: Transaction) -> Host:
            host = own_host(tx, ref)
            store.set_allow_out(tx, host.id, wanted)
            self._audit.record(
                tx, actor, "host.allow-out", host.id, name=host.name, networks=" ".join(wanted)
            )
            return replace(host, allow_out=wanted)

        return self._database.write(work)

    def idle(self, project: ProjectId) -> Mapping[str, Idle]:
        """Cards that instances of a project have held for a while without using them, by instance."""
        latest = self._clock.now() - IDLE_MIN
        with self._database.read() as tx:
            found = cards.idle_in_project(tx, project)
        return {instance: idle for instance, idle in found.items() if idle.since <= latest}

    def shapes(self) -> list[NamedShape]:
        """Named shapes and how many of each are free. With a thousand hosts, that is a second old."""

        def make() -> tuple[list[NamedShape], int]:
            with self._database.read() as tx:
                hosts = store.kinds_of_hosts(tx)
                rooms = store.rooms(tx, self._policy)
            found = [replace(shape, free=count_free(rooms, shape.need)) for shape in named_shapes(hosts)]
            return found, len(rooms)

        return self._shapes.get("all", make)


def checked_networks(networks: Sequence[str]) -> tuple[str, ...]:
    """The networks in canonical form, sorted."""
    if len(networks) > ALLOW_OUT_MAX:
        raise BadInput(
            f"You can allow up to {ALLOW_OUT_MAX} networks for a host",
            hint="Combine them into larger networks",
        )
    return tuple(map(str, sorted({_checked_network(text) for text in networks})))


def _checked_network(text: str) -> IPv4Network:
    try:
        network = IPv4Network(text)
    except ValueError:
        raise BadInput(
            f"`{text[:40]}` is not an IPv4 network",
            hint="Write it as `192.168.10.0/24` or `192.168.10.7/32`",
        ) from None
    if any(network.overlaps(never) for never in NEVER_OUT):
        raise BadInput(
            f"`{network}` contains addresses that must stay blocked, such as a cloud's credentials service",
            hint="Allow only the networks that your instances need, such as `192.168.10.0/24`",
        )
    return network


def found_host(tx: Transaction, ref: str) -> Host:
    host = store.host(tx, ref)
    if host is None:
        raise NotFound(f"There is no host `{ref[:80]}`", hint="`tera host list` lists them")
    return host


def own_host(tx: Transaction, ref: str) -> Host:
    host = found_host(tx, ref)
    if host.kind == HostKind.RENTED:
        raise Refused(
            f"`{host.name}` is a rented host: it serves one instance and is given back with it",
            hint="Delete the instance instead",
        )
    return host
