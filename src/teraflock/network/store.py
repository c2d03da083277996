"""All SQL for networks. A project's number is the number of its network. Below 0: the network was removed."""

from typing import Final

from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId
from teraflock.tenant.project.store import set_network

TAKEN_DOWN: Final = -1


def take_down(tx: Transaction, project: ProjectId) -> None:
    """Free the project's part of the address range, because no engine uses it any more."""
    set_network(tx, project, TAKEN_DOWN)
