"""The loop that tells the DNS servers of hosts the names of instances on other hosts and in peered networks."""

import logging
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.network import store
from teraflock.network.naming import KnownName, NamingDriver, known_names
from teraflock.network.peering.store import active_in_all_projects
from teraflock.reconcile.linked import linked_sites
from teraflock.reconcile.surroundings import Surroundings

LOG: Final = logging.getLogger("teraflock.reconcile")


class NameLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._problems: dict[str, str] = {}
        """Why the last attempt at each site failed. The log gets each reason once."""

    def turn(self) -> None:
        drivers = {each.site: each for each in self._around.engines if isinstance(each, NamingDriver)}
        if not drivers:
            return
        with self._around.database.read() as tx:
            linked = linked_sites(tx, self._around.engines)
            peerings = active_in_all_projects(tx)
            members = store.named_in_all_projects(tx) if linked or peerings else ()
        for site, driver in drivers.items():
            self._bring(site, driver, known_names(site, members, peerings, linked))

    def _bring(self, site: str, driver: NamingDriver, names: tuple[KnownName, ...]) -> None:
        problem = ""
        try:
            driver.know(names)
        except (TeraflockError, OSError) as error:
            problem = str(error)
        if problem and self._problems.get(site) != problem:
            LOG.warning("%s: cannot set DNS names: %s", site, problem)
        self._problems[site] = problem
