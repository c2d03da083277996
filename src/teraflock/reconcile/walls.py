"""The loop that brings security groups, ACLs, published ports and peerings into the firewalls of hosts.

It compares what the database says with what each engine loaded, so a change by any process, a restart and a firewall
that somebody emptied are all handled alike. The rules of a group are read again only when its version has changed.
"""

import logging
from collections.abc import Mapping
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.instance.driver import Capability
from teraflock.network.acl import store as acls
from teraflock.network.peering import store as peerings
from teraflock.network.published_port import store as published_ports
from teraflock.network.rules import subnet
from teraflock.network.security_group import store
from teraflock.network.security_group.model import GroupId, Rule
from teraflock.network.walls import Published, Walls, pair
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")


class WallLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._rules: dict[GroupId, tuple[int, tuple[Rule, ...]]] = {}
        """The rules of each group that has members, with their version."""

    def turn(self) -> None:
        with self._around.database.read() as tx:
            wanted = self._wanted(tx)
        for driver in self._around.engines:
            if Capability.FIREWALL not in driver.capabilities:
                continue
            try:
                driver.enforce(wanted.get(driver.site, Walls()))
            except (TeraflockError, OSError) as error:
                LOG.warning("%s: cannot load security groups: %s", driver.site, error)

    def _wanted(self, tx: Transaction) -> Mapping[str, Walls]:
        """What each site should enforce."""
        stations: dict[str, dict[str, tuple[GroupId, ...]]] = {}
        for site, address, group in store.stations_in_all_projects(tx):
            of_site = stations.setdefault(site, {})
            of_site[address] = (*of_site.get(address, ()), group)
        used = {group for each in stations.values() for groups in each.values() for group in groups}
        versions = store.versions_in_all_projects(tx)
        fresh = [id for id in used if id not in self._rules or self._rules[id][0] != versions[id]]
        read = store.rules_in_all_projects(tx, fresh)
        self._rules = {id: (versions[id], read[id]) if id in read else self._rules[id] for id in used}
        rules = {id: each for id, (_, each) in self._rules.items()}
        published: dict[str, list[Published]] = {}
        for site, port in published_ports.in_all_projects(tx):
            published.setdefault(site, []).append(port)
        borders = acls.borders_in_all_projects(tx)
        active = peerings.active_in_all_projects(tx)
        peers = frozenset(pair(str(subnet(one)), str(subnet(other))) for one, other in active)
        return {
            site: Walls(
                groups=_of(each, rules),
                stations=each,
                published=tuple(sorted(published.get(site, ()))),
                borders=borders,
                peers=peers,
            )
            for site, each in stations.items()
        }


def _of(
    stations: Mapping[str, tuple[GroupId, ...]], rules: Mapping[GroupId, tuple[Rule, ...]]
) -> Mapping[GroupId, tuple[Rule, ...]]:
    return {group: rules[group] for groups in stations.values() for group in groups}
