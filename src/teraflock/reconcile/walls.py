"""The loop that brings security groups, ACLs, published ports and peerings into the firewalls of hosts.

It compares what the database says with what each engine loaded, so a change by any process, a restart and a firewall
that somebody emptied are all handled alike. The rules of a group are read again only when its version has changed, and
the addresses of instances only when an instance or a membership has changed, or a minute has passed.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.network.acl import store as acls
from teraflock.network.address import store as addresses
from teraflock.network.balancer.walls import walls_of_balancers
from teraflock.network.peering import store as peerings
from teraflock.network.published_port import store as published_ports
from teraflock.network.rules import subnet
from teraflock.network.security_group import store
from teraflock.network.security_group.model import GroupId, Rule
from teraflock.network.walls import Floating, Published, Walls, network_of, pair
from teraflock.reconcile.linked import linked_sites
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
Stations = dict[str, tuple[GroupId, ...]]
"""The groups of each instance, by its address."""


class WallLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._rules: dict[GroupId, tuple[int, tuple[Rule, ...]]] = {}
        """The rules of each group that has members, with their version."""
        self._stations: tuple[object, Mapping[str, Stations]] = (None, {})
        """The stations of each site as last read, and what was read to notice a change."""
        self._problems: dict[str, str] = {}
        """Why the last load at each site failed. The log gets each reason once."""
        self._wants: Mapping[str, Walls] = {}
        """What each site should enforce, as last read."""

    def turn(self) -> None:
        self.read()
        for driver in self._around.engines:
            self.turn_of(driver)

    def read(self) -> None:
        with self._around.database.read() as tx:
            self._wants = self._wanted(tx, linked_sites(tx, self._around.engines))

    def turn_of(self, driver: ComputeDriver) -> None:
        if Capability.FIREWALL not in driver.capabilities:
            return
        problem = ""
        try:
            driver.enforce(self._wants.get(driver.site, Walls()))
        except (TeraflockError, OSError) as error:
            problem = str(error)
        if problem and self._problems.get(driver.site) != problem:
            LOG.warning("%s: cannot load security groups: %s", driver.site, problem)
        self._problems[driver.site] = problem

    def _wanted(self, tx: Transaction, linked: Collection[str] = ()) -> Mapping[str, Walls]:
        """What each site should enforce. `linked` sites share the networks of projects."""
        stations = dict(self._read_stations(tx))
        balancers = walls_of_balancers(tx, linked)
        for site, each in balancers.items():
            stations[site] = {**stations.get(site, {}), **each.stations}
        active = peerings.active_in_all_projects(tx)
        peers = frozenset(pair(str(subnet(one)), str(subnet(other))) for one, other in active)
        stations = shared(stations, linked, peers)
        used = {group for each in stations.values() for groups in each.values() for group in groups}
        own = {group: rules for each in balancers.values() for group, rules in each.rules.items()}
        used -= own.keys()
        versions = store.versions_in_all_projects(tx)
        fresh = [id for id in used if id not in self._rules or self._rules[id][0] != versions[id]]
        read = store.rules_in_all_projects(tx, fresh)
        self._rules = {id: (versions[id], read[id]) if id in read else self._rules[id] for id in used}
        rules = {id: each for id, (_, each) in self._rules.items()} | own
        published: dict[str, list[Published]] = {}
        for site, port in published_ports.in_all_projects(tx):
            published.setdefault(site, []).append(port)
        for site, each in balancers.items():
            published.setdefault(site, []).extend(each.published)
        floating: dict[str, list[Floating]] = {}
        for site, public, private in addresses.floating_in_all_projects(tx):
            floating.setdefault(site, []).append(Floating(public, private))
        borders = acls.borders_in_all_projects(tx)
        return {
            site: Walls(
                groups=_of(each, rules),
                stations=each,
                published=tuple(sorted(published.get(site, ()))),
                floating=tuple(sorted(floating.get(site, ()))),
                borders=borders,
                peers=peers,
            )
            for site, each in stations.items()
        }

    def _read_stations(self, tx: Transaction) -> Mapping[str, Stations]:
        """The stations of instances, by site."""
        minute = self._around.clock.now().replace(second=0, microsecond=0)
        reading = across.changes_in_all_projects(tx), store.members_in_all_projects(tx), minute
        if self._stations[0] != reading:
            found: dict[str, Stations] = {}
            for site, address, group in store.stations_in_all_projects(tx):
                of_site = found.setdefault(site, {})
                of_site[address] = (*of_site.get(address, ()), group)
            self._stations = reading, found
        return self._stations[1]


def shared(
    stations: Mapping[str, Stations], linked: Collection[str], peers: Collection[tuple[str, str]] = ()
) -> dict[str, Stations]:
    """The stations of each site, with those at linked sites in the same networks and in networks peered with them:
    packets from and to them pass its firewall."""
    found = dict(stations)
    for site in linked:
        own = {network_of(address) for address in stations.get(site, ())}
        near = own | {each for both in peers if not own.isdisjoint(both) for each in both}
        for other in linked:
            if own and other != site:
                there = stations.get(other, {}).items()
                found[site] = {
                    **found[site],
                    **{each: groups for each, groups in there if network_of(each) in near},
                }
    return found


def _of(
    stations: Mapping[str, tuple[GroupId, ...]], rules: Mapping[GroupId, tuple[Rule, ...]]
) -> Mapping[GroupId, tuple[Rule, ...]]:
    return {group: rules[group] for groups in stations.values() for group in groups}
