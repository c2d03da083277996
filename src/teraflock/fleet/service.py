"""What the edges ask of the fleet: its hosts, and which shapes are to be had."""

import os
from collections.abc import Callable

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import NotFound
from teraflock.base.ids import new_id
from teraflock.fleet import store
from teraflock.fleet.model import Host, HostState
from teraflock.fleet.placement import Policy
from teraflock.fleet.shapes import NamedShape, count_free, named_shapes
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.model import Actor, AuditRow
from teraflock.tenant.store import put_audit

HOSTS_MAX = 100_000


class FleetService:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        policy: Policy | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._database = database
        self._clock = clock
        self._policy = policy or Policy()
        self._random_bytes = random_bytes

    def hosts(self, *, after: str = "", limit: int) -> tuple[Host, ...]:
        with self._database.read() as tx:
            return store.hosts(tx, after=after, limit=limit)

    def host(self, ref: str) -> Host:
        with self._database.read() as tx:
            return _found(tx, ref)

    def set_state(self, actor: Actor, ref: str, state: HostState) -> Host:
        """`draining` keeps what runs there and lets nothing new in; `ready` opens it again."""

        def work(tx: Transaction) -> Host:
            now = self._clock.now()
            host = _found(tx, ref)
            store.set_state(tx, host.id, state)
            put_audit(
                tx,
                AuditRow(
                    id=new_id("aud", now, self._random_bytes),
                    at=now,
                    organisation_id=actor.organisation_id,
                    project_id="",
                    key_id=actor.key_id,
                    member_id=actor.member_id,
                    action=f"host.{state}",
                    subject=host.id,
                    details={"name": host.name},
                ),
            )
            return replace(host, state=state)

        return self._database.write(work)

    def shapes(self) -> list[NamedShape]:
        with self._database.read() as tx:
            hosts = store.hosts(tx, limit=HOSTS_MAX)
            rooms = store.rooms(tx, self._policy)
        return [replace(shape, free=count_free(rooms, shape.need)) for shape in named_shapes(hosts)]


def _found(tx: Transaction, ref: str) -> Host:
    host = store.host(tx, ref)
    if host is None:
        raise NotFound(f"There is no host `{ref[:80]}`", hint="`tera host list` lists them")
    return host
