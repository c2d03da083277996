"""The loop that removes the networks of deleted projects, and the rows of what is gone.

Addresses are reused only after the network is removed.
"""

import logging
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.fleet.model import HostId
from teraflock.fleet.store import lock_hosts
from teraflock.instance.machines import network_of
from teraflock.network import store
from teraflock.network.acl import store as acls
from teraflock.network.address import store as addresses
from teraflock.network.address.events import record_released
from teraflock.network.address.model import PublicAddress
from teraflock.network.balancer import store as balancers
from teraflock.network.published_port import store as published_ports
from teraflock.network.published_port.rules import chosen
from teraflock.network.security_group import store as groups
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId
from teraflock.tenant.project.store import removed_with_network

LOG: Final = logging.getLogger("teraflock.reconcile")


class NetworkLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        with self._around.database.read() as tx:
            used = balancers.projects_with_some(tx)
            idle = [each for each in removed_with_network(tx) if each[0] not in used]
            unowned = addresses.of_removed_projects(tx)
            is_untidy = groups.has_deleted_instances(tx)
            astray = published_ports.astray_in_all_projects(tx)
        if is_untidy:
            self._around.database.write(groups.forget_deleted_instances)
        if astray:
            self._around.database.write_with_locks(_follow)
        for address in unowned:
            self._release(address)
        for project, number in idle:
            try:
                self._retire(project, number)
            except TeraflockError as error:
                LOG.warning("the network of %s cannot be removed yet: %s", project, error.sentence)

    def _release(self, address: PublicAddress) -> None:
        now, random_bytes = self._around.clock.now(), self._around.random_bytes

        def work(tx: Transaction) -> None:
            if addresses.remove(tx, address.id):
                record_released(tx, address, now, random_bytes)

        self._around.database.write(work)

    def _retire(self, project: ProjectId, number: int) -> None:
        for driver in self._around.engines:
            driver.retire(network_of(project, number))
        self._around.database.write(lambda tx: _forget(tx, project))


def _follow(tx: Transaction) -> None:
    """Published ports follow their instances to another host, with the same number if it is free there."""
    for port, host in published_ports.astray_in_all_projects(tx):
        if host is None:
            published_ports.remove(tx, port.id)
        else:
            lock_hosts(tx, [HostId(host)])
            taken = published_ports.taken(tx, host)
            number = chosen(None if port.port in taken else port.port, taken)
            published_ports.move(tx, port.id, host, number)


def _forget(tx: Transaction, project: ProjectId) -> None:
    acls.remove_all_of(tx, project)
    groups.remove_all_of(tx, project)
    published_ports.remove_all_of(tx, project)
    store.take_down(tx, project)
