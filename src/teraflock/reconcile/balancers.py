"""The loop that brings load balancers to hosts, and moves them to other hosts.

Each turn gives every engine all balancers that it should run. The engine compares them with what runs, so a killed
HAProxy, a restarted server and a change are handled alike. The row of a deleted balancer goes when its engine has
removed it: until then nobody else gets its address or its port. Its counter is read once more before that.

A balancer whose host is lost, gone or drained moves with its address. The lost host may still run it, for the guests
there: packets of all other hosts go to the new one. It is removed when the host answers.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import Refused, TeraflockError
from teraflock.base.filling import filled
from teraflock.fleet.model import HostId
from teraflock.fleet.store import lock_hosts
from teraflock.instance.driver import Capability, ComputeDriver, Sent
from teraflock.network.balancer import events, store
from teraflock.network.balancer.model import (
    BackendSpec,
    Balancer,
    BalancerId,
    BalancerPlace,
    BalancerSpec,
    Target,
)
from teraflock.network.balancer.rules import must_move, other_host
from teraflock.network.published_port.rules import chosen
from teraflock.network.published_port.store import taken
from teraflock.reconcile.linked import linked_sites
from teraflock.reconcile.surroundings import Surroundings
from teraflock.reconcile.traffic import keep
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
OpenKey = Callable[[str, str], str]
"""Decrypts a key. The second argument is the id of its balancer."""


class BalancerLoop:
    def __init__(self, around: Surroundings, open_key: OpenKey) -> None:
        self._around = around
        self._open_key = open_key

    def turn(self) -> None:
        self._tidy()
        with self._around.database.read() as tx:
            found = store.in_all_projects(tx)
            targets = store.targets_in_all_projects(tx, linked_sites(tx, self._around.engines))
        for driver in self._around.engines:
            if Capability.BALANCER in driver.capabilities:
                self._bring(driver, [each for each in found if each[0].site == driver.site], targets)

    def _tidy(self) -> None:
        """Remove what deleted instances and projects left, and choose hosts for balancers that need another one."""
        now = self._around.clock.now()
        with self._around.database.read() as tx:
            has_leftovers = store.has_leftovers(tx)
            every = [balancer for balancer, _ in store.in_all_projects(tx)]
            hosts = {each.id: each for each in store.hosts(tx)} if every else {}
        if has_leftovers:
            self._around.database.write(self._remove_leftovers)
        for each in every:
            if each.ending and each.host_id not in hosts:
                self._around.database.write(partial(self._forget, id=each.id, counters=()))
        for id in [each.id for each in every if must_move(each, hosts.get(each.host_id), now=now)]:
            if self._around.database.write_with_locks(partial(self._move, id=id)):
                LOG.warning("%s moves to another host", id)
                self._around.wake()

    def _remove_leftovers(self, tx: Transaction) -> None:
        store.end_those_of_removed_projects(tx)
        store.forget_deleted_instances(tx)
        for each in store.without_events_in_all_projects(tx):
            events.record_place(tx, each, self._around.clock.now(), self._around.random_bytes)

    def _move(self, tx: Transaction, id: BalancerId) -> bool:
        """Give a balancer another host, if it still must leave its own and there is one."""
        before = store.locked_in_all_projects(tx, id)
        now, linked = self._around.clock.now(), linked_sites(tx, self._around.engines)
        hosts = {each.id: each for each in store.hosts(tx)}
        if before is None or not must_move(before, hosts.get(before.host_id), now=now):
            return False
        able = [each for each in hosts.values() if self._around.engines.can(each.site, Capability.BALANCER)]
        targets = store.targets_in_all_projects(tx, linked).get(id, ())
        host = other_host(before, able, targets, linked)
        if host is None:
            return False
        lock_hosts(tx, [HostId(host.id)])
        port = _free_port(tx, before.published, host.id)
        after = replace(before, site=host.site, host_id=host.id, published=port)
        events.record_place(tx, after, now, self._around.random_bytes)
        return True

    def _bring(
        self,
        driver: ComputeDriver,
        here: list[tuple[Balancer, BalancerPlace]],
        targets: Mapping[BalancerId, tuple[Target, ...]],
    ) -> None:
        """Make an engine run its balancers, and forget those that it has removed."""
        wanted = [spec for each in here if not each[0].ending for spec in self._specs(each, targets)]
        ended = [balancer for balancer, _ in here if balancer.ending]
        try:
            driver.balance(wanted)
            has_counters = ended and Capability.TRAFFIC in driver.capabilities
            counters = tuple(driver.all_sent()) if has_counters else ()
        except (TeraflockError, OSError) as error:
            LOG.warning("%s: cannot run balancers: %s", driver.site, error)
            return
        for each in ended:
            own = [count for count in counters if str(count.instance_id) == each.id and count.bytes]
            self._around.database.write(partial(self._forget, id=each.id, counters=own))

    def _forget(self, tx: Transaction, id: BalancerId, counters: Collection[Sent]) -> None:
        balancer = store.by_id_in_all_projects(tx, id)
        if balancer is None or not balancer.ending:
            return
        now = self._around.clock.now()
        keep(tx, list(counters), now)
        events.record_end(tx, balancer, now, self._around.random_bytes)
        store.remove(tx, id)

    def _specs(
        self, row: tuple[Balancer, BalancerPlace], targets: Mapping[BalancerId, tuple[Target, ...]]
    ) -> Iterable[BalancerSpec]:
        """One, or none if the key cannot be decrypted."""
        balancer, place = row
        try:
            key = self._open_key(balancer.sealed_key, balancer.id) if balancer.sealed_key else ""
        except TeraflockError as error:
            LOG.warning("%s: cannot run it: %s", balancer.id, error)
            return
        backends = (
            BackendSpec(each.instance_id, each.address or "") for each in targets.get(balancer.id, ())
        )
        yield filled(
            BalancerSpec,
            balancer,
            network_number=place.network,
            network_key=place.network_key,
            domain=f"{place.project}.internal",
            host=place.host,
            key=key,
            backends=tuple(sorted(backends)),
        )


def _free_port(tx: Transaction, wanted: int | None, host: str) -> int | None:
    """The same port of another host, or a free one if it is taken. None: it is not published, or no port is free."""
    if wanted is None:
        return None
    used = taken(tx, host)
    try:
        return chosen(None if wanted in used else wanted, used)
    except Refused:
        return None
