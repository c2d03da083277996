"""The loop that removes deleted networks and those of deleted projects, and the rows of what is gone.

Addresses are reused only after the network is removed.
"""

import logging
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.fleet.model import HostId
from teraflock.fleet.store import lock_hosts
from teraflock.instance.machines import network_of
from teraflock.instance.states import ENDED
from teraflock.network import store
from teraflock.network.acl import store as acls
from teraflock.network.address import store as addresses
from teraflock.network.address.events import record_released
from teraflock.network.address.model import PublicAddress
from teraflock.network.balancer import store as balancers
from teraflock.network.model import ProjectNetwork
from teraflock.network.peering import store as peerings
from teraflock.network.published_port import store as published_ports
from teraflock.network.published_port.rules import chosen
from teraflock.network.security_group import store as groups
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")


class NetworkLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        with self._around.database.read() as tx:
            used = balancers.projects_with_some(tx)
            removed = [each for each in store.removed_in_all_projects(tx) if each[0].project_id not in used]
            unowned = addresses.of_removed_projects(tx)
            is_untidy = groups.has_deleted_instances(tx)
            astray = published_ports.astray_in_all_projects(tx, ENDED)
        if is_untidy:
            self._around.database.write(groups.forget_deleted_instances)
        if astray:
            self._around.database.write_with_locks(_follow)
        for address in unowned:
            self._release(address)
        for network, with_project in removed:
            try:
                self._retire(network, with_project)
            except TeraflockError as error:
                LOG.warning("the network %s cannot be removed yet: %s", network.id, error.sentence)

    def _release(self, address: PublicAddress) -> None:
        now, random_bytes = self._around.clock.now(), self._around.random_bytes

        def work(tx: Transaction) -> None:
            if addresses.remove(tx, address.id):
                record_released(tx, address, now, random_bytes)

        self._around.database.write(work)

    def _retire(self, network: ProjectNetwork, with_project: bool) -> None:
        gone = network_of(network.project_id, network.number, key=network.engine_key, name=network.name)
        for driver in self._around.engines:
            driver.retire(gone)
        self._around.database.write(lambda tx: _forget(tx, network, with_project))


def _follow(tx: Transaction) -> None:
    """Published ports follow their instances to another host, with the same number if it is free there."""
    for port, host in published_ports.astray_in_all_projects(tx, ENDED):
        if host is None:
            published_ports.remove(tx, port.id)
        else:
            lock_hosts(tx, [HostId(host)])
            taken = published_ports.taken(tx, host)
            number = chosen(None if port.port in taken else port.port, taken)
            published_ports.move(tx, port.id, host, number)


def _forget(tx: Transaction, network: ProjectNetwork, with_project: bool) -> None:
    peerings.end_all(tx, network)
    store.forget(tx, network, with_project=with_project)
    if with_project:
        project = network.project_id
        acls.remove_all_of(tx, project)
        groups.remove_all_of(tx, project)
        published_ports.remove_all_of(tx, project)
