"""The loop that links the networks of projects across hosts. See `network/fabric.py`.

It compares nothing itself: each host gets what it should have, and changes what differs. A host that does not answer
keeps its place in the links of the others, because its instances may still run.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.fleet import store as fleet
from teraflock.instance.join import store as joins
from teraflock.network import store
from teraflock.network.fabric import (
    Fabric,
    FabricDriver,
    LinkHost,
    WireKey,
    can_be_peer,
    fabrics,
    unlinked,
)
from teraflock.network.peering.store import active_in_all_projects
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")


class FabricLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._wires: dict[str, WireKey] = {}
        """How each host encrypts, as it last said."""
        self._problems: dict[str, str] = {}
        """Why the last attempt at each site failed. The log gets each reason once."""
        self._has_linked = False

    def turn(self) -> None:
        drivers = {each.site: each for each in self._around.engines if isinstance(each, FabricDriver)}
        with self._around.database.read() as tx:
            has_joined = bool(joins.joined(tx))
        if not has_joined and not self._has_linked:
            return  # the usual case: one machine
        for site, driver in drivers.items():
            self._ask(site, driver)
        with self._around.database.read() as tx:
            hosts = self._hosts(tx, set(drivers))
            members = store.members_in_all_projects(tx)
            peerings = active_in_all_projects(tx)
            networks = store.keys_in_all_projects(tx, {each for both in peerings for each in both})
        self._apply(drivers, fabrics(hosts, members, peerings, networks), unlinked(hosts))
        self._has_linked = has_joined

    def _ask(self, site: str, driver: FabricDriver) -> None:
        try:
            self._wires[site] = driver.wire()
        except TeraflockError as error:
            self._note(site, error.sentence)

    def _hosts(self, tx: Transaction, sites: set[str]) -> list[LinkHost]:
        """Hosts that can be linked. Of sites that did not join, only the first: it has the number 0."""
        joined = {each.name: each for each in joins.joined(tx)}
        found: list[LinkHost] = []
        for host in fleet.outlines(tx):
            known = joined.get(host.site)
            is_second = known is None and any(each.number == 0 for each in found)
            if host.site not in sites or host.site not in self._wires or is_second:
                continue
            if not can_be_peer(host.address):
                self._note(host.site, f"other hosts cannot reach its address {host.address}")
                continue
            found.append(
                LinkHost(
                    site=host.site,
                    address=host.address,
                    number=known.number if known else 0,
                    wire=self._wires[host.site],
                    trusted=known.trusted_wire if known else False,
                )
            )
        return found

    def _apply(
        self,
        drivers: Mapping[str, FabricDriver],
        wanted: Mapping[str, Fabric],
        apart: Sequence[tuple[str, str]],
    ) -> None:
        for one, other in apart:
            reason = "one of them cannot encrypt, and their wire is not trusted"
            self._note(f"{one} and {other}", f"their networks are not linked: {reason}")
        for site, driver in drivers.items():
            if site not in self._wires:
                continue
            try:
                driver.link(wanted.get(site, Fabric()))
            except TeraflockError as error:
                self._note(site, error.sentence)
            else:
                self._problems.pop(site, None)

    def _note(self, where: str, problem: str) -> None:
        if self._problems.get(where) != problem:
            LOG.warning("%s: %s", where, problem)
        self._problems[where] = problem
