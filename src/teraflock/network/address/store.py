"""All SQL for public addresses."""

from typing import Final

from teraflock.network.address.model import AddressTarget, PublicAddress, ShownAddress
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table, number
from teraflock.tenant.model import OrganisationId, ProjectId
from teraflock.tenant.project.store import IN_ORGANISATION

_ADDRESS: Final = Table("address", PublicAddress)
_TARGETS: Final = (
    " LEFT JOIN instance i ON i.id = a.target_id AND i.phase <> 'gone'"
    " LEFT JOIN balancer b ON b.id = a.target_id AND b.ending = 0"
)


def of_project(tx: Transaction, project: ProjectId) -> tuple[ShownAddress, ...]:
    rows = tx.all(
        f"SELECT {_ADDRESS.names_in('a')}, i.name, i.address, b.name, b.address FROM address a{_TARGETS}"
        " WHERE a.project_id = :project ORDER BY a.id",
        project=project,
    )
    return tuple(map(_shown, rows))


def target(tx: Transaction, project: ProjectId, ref: str) -> list[AddressTarget]:
    """The instance and the balancer of this id or name."""
    rows = tx.all(
        "SELECT id, name, 'instance', address FROM instance"
        " WHERE project_id = :project AND phase <> 'gone' AND (id = :ref OR name = :ref)"
        " UNION SELECT id, name, 'balancer', address FROM balancer"
        " WHERE project_id = :project AND ending = 0 AND (id = :ref OR name = :ref) ORDER BY 3",
        project=project,
        ref=ref,
    )
    return [AddressTarget(id=row[0], name=row[1], kind=row[2], private=row[3]) for row in rows]


def target_of(tx: Transaction, project: ProjectId, address: str) -> str:
    """The id of the instance or balancer that a public address of the project leads to. Empty: none."""
    row = tx.one(
        f"SELECT COALESCE(i.id, b.id) FROM address a{_TARGETS}"
        " WHERE a.project_id = :project AND a.address = :address AND COALESCE(i.address, b.address) IS NOT NULL",
        project=project,
        address=address,
    )
    return str(row[0]) if row else ""


def taken_in_all_projects(tx: Transaction) -> set[str]:
    return {row[0] for row in tx.all("SELECT address FROM address")}


def floating_in_all_projects(tx: Transaction) -> list[tuple[str, str, str]]:
    """Site, public and private address of everything that has one."""
    rows = tx.all(
        "SELECT COALESCE(i.site, b.site), a.address, COALESCE(i.address, b.address)"
        f" FROM address a{_TARGETS} WHERE COALESCE(i.address, b.address) IS NOT NULL ORDER BY a.address"
    )
    return [(row[0], row[1], row[2]) for row in rows]


def of_removed_projects(tx: Transaction) -> tuple[PublicAddress, ...]:
    rows = tx.all(
        f"SELECT {_ADDRESS.names_in('a')} FROM address a JOIN project p ON p.id = a.project_id"
        " WHERE p.removed_at_us IS NOT NULL ORDER BY a.id"
    )
    return tuple(map(_ADDRESS.value, rows))


def count(tx: Transaction, project: ProjectId) -> int:
    return _count(tx, "project_id = :id", project)


def count_of_organisation(tx: Transaction, organisation: OrganisationId) -> int:
    return _count(tx, f"project_id IN ({IN_ORGANISATION})", organisation)


def insert(tx: Transaction, address: PublicAddress) -> bool:
    """Whether it was free."""
    return bool(
        tx.run(
            f"{_ADDRESS.insert} ON CONFLICT DO NOTHING",
            **dict(zip(_ADDRESS.columns, _ADDRESS.row(address), strict=True)),
        )
    )


def attach(tx: Transaction, id: str, target_id: str) -> None:
    tx.run("UPDATE address SET target_id = :target WHERE id = :id", target=target_id, id=id)


def remove(tx: Transaction, id: str) -> bool:
    """Whether it was there."""
    return bool(tx.run("DELETE FROM address WHERE id = :id", id=id))


def _count(tx: Transaction, where: str, id: str) -> int:
    return number(tx, f"SELECT COUNT(*) FROM address WHERE {where}", id=id)


def _shown(row: Row) -> ShownAddress:
    instance, instance_address, balancer, balancer_address = row[-4:]
    public = _ADDRESS.value(row[:-4])
    if instance is None and balancer is None:
        return ShownAddress(public=public)
    kind, name, private = (
        ("instance", instance, instance_address)
        if instance is not None
        else ("balancer", balancer, balancer_address)
    )
    return ShownAddress(
        public=public, target=AddressTarget(id=public.target_id, name=name, kind=kind, private=private)
    )
