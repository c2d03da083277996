"""All SQL about networks. A project's number is its network's; one that is below 0 is a network that was taken down."""

from typing import Final

from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId

TAKEN_DOWN: Final = -1


def of_removed_projects(tx: Transaction) -> tuple[tuple[ProjectId, int], ...]:
    """Networks that engines may still have, though their projects are no more."""
    rows = tx.all(
        "SELECT id, network_number FROM project WHERE removed_at_us IS NOT NULL AND network_number >= 0 ORDER BY id"
    )
    return tuple((ProjectId(row[0]), int(row[1])) for row in rows)


def take_down(tx: Transaction, project: ProjectId) -> None:
    """Its part of the address range is free again: no engine has it any more."""
    tx.run("UPDATE project SET network_number = :down WHERE id = :id", down=TAKEN_DOWN, id=project)
