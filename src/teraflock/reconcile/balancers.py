"""The loop that brings load balancers to hosts, and what their addresses may reach.

Each turn gives every engine all balancers that it should run. The engine compares them with what runs, so a killed
HAProxy, a restarted server and a change are handled alike. The row of a deleted balancer goes when its engine has
removed it: until then nobody else gets its address or its port.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from teraflock.base.errors import TeraflockError
from teraflock.instance.driver import Capability
from teraflock.network.balancer import store
from teraflock.network.balancer.model import (
    BackendSpec,
    Balancer,
    BalancerId,
    BalancerPlace,
    BalancerSpec,
    Target,
)
from teraflock.network.balancer.rules import firewall_rules, group_of
from teraflock.network.security_group.model import GroupId, Rule
from teraflock.network.security_group.rules import default_id
from teraflock.network.walls import Published
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
OpenKey = Callable[[str, str], str]
"""Decrypts a key. The second argument is the id of its balancer."""


class BalancerLoop:
    def __init__(self, around: Surroundings, open_key: OpenKey) -> None:
        self._around = around
        self._open_key = open_key

    def turn(self) -> None:
        with self._around.database.read() as tx:
            is_untidy = store.has_leftovers(tx)
            found = store.in_all_projects(tx)
            targets = store.targets_in_all_projects(tx)
        if is_untidy:
            self._around.database.write(_tidy)
        for driver in self._around.engines:
            if Capability.BALANCER not in driver.capabilities:
                continue
            here = [each for each in found if each[0].site == driver.site]
            wanted = [spec for each in here if not each[0].ending for spec in self._specs(each, targets)]
            try:
                driver.balance(wanted)
            except (TeraflockError, OSError) as error:
                LOG.warning("%s: cannot run balancers: %s", driver.site, error)
                continue
            self._forget([each[0].id for each in here if each[0].ending])

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
        yield BalancerSpec(
            id=balancer.id,
            name=balancer.name,
            project_id=balancer.project_id,
            network_number=place.network,
            network_key=place.network_key,
            domain=f"{place.project}.internal",
            host=place.host,
            address=balancer.address,
            protocol=balancer.protocol,
            port=balancer.port,
            target_port=balancer.target_port,
            health_check=balancer.health_check,
            check_seconds=balancer.check_seconds,
            certificate=balancer.certificate,
            key=key,
            backends=tuple(sorted(backends)),
        )

    def _forget(self, ended: list[BalancerId]) -> None:
        for id in ended:
            self._around.database.write(lambda tx, id=id: store.remove(tx, id))  # type: ignore[misc]


def _tidy(tx: Transaction) -> None:
    store.end_those_of_removed_projects(tx)
    store.forget_deleted_instances(tx)


class BalancerWalls(msgspec.Struct, frozen=True, kw_only=True):
    """What the firewall of a site needs for its balancers."""

    stations: Mapping[str, tuple[GroupId, ...]] = {}
    projects: Mapping[str, str] = {}
    """By address."""
    rules: Mapping[GroupId, tuple[Rule, ...]] = {}
    published: tuple[Published, ...] = ()


def walls_of_balancers(tx: Transaction) -> Mapping[str, BalancerWalls]:
    """By site. A balancer is in the `default` group of its project and in a group of its own."""
    targets = store.targets_in_all_projects(tx)
    by_site: dict[str, list[tuple[Balancer, int, str]]] = {}
    for balancer, place in store.in_all_projects(tx):
        if not balancer.ending:
            by_site.setdefault(balancer.site, []).append((balancer, place.network, place.host))
    return {site: _walls(each, targets) for site, each in by_site.items()}


def _walls(
    rows: Iterable[tuple[Balancer, int, str]], targets: Mapping[BalancerId, tuple[Target, ...]]
) -> BalancerWalls:
    stations, projects, rules, published = {}, {}, {}, []
    for balancer, number, host in rows:
        group = group_of(balancer.id)
        projects[balancer.address] = str(balancer.project_id)
        stations[balancer.address] = tuple(sorted((default_id(balancer.project_id), group)))
        reached = (each.address for each in targets.get(balancer.id, ()) if each.address)
        rules[group] = firewall_rules(balancer, number, reached)
        if balancer.published is not None:
            published.append(Published(host, balancer.published, balancer.address, balancer.port))
    return BalancerWalls(stations=stations, projects=projects, rules=rules, published=tuple(published))
