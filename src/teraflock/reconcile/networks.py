"""The loop that removes the networks of deleted projects. Their addresses are reused only after that."""

import logging
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.instance.machines import network_of
from teraflock.network import store
from teraflock.reconcile.surroundings import Surroundings
from teraflock.tenant.model import ProjectId
from teraflock.tenant.project.store import removed_with_network

LOG: Final = logging.getLogger("teraflock.reconcile")


class NetworkLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        with self._around.database.read() as tx:
            idle = removed_with_network(tx)
        for project, number in idle:
            try:
                self._retire(project, number)
            except TeraflockError as error:
                LOG.warning("the network of %s cannot be removed yet: %s", project, error.sentence)

    def _retire(self, project: ProjectId, number: int) -> None:
        for driver in self._around.engines:
            driver.retire(network_of(project, number))
        self._around.database.write(lambda tx: store.take_down(tx, project))
