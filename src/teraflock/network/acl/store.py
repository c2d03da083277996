"""All SQL for network ACLs."""

from collections import defaultdict
from typing import Final

from msgspec.structs import replace

from teraflock.network.acl.model import Acl, AclRule
from teraflock.network.model import DEFAULT
from teraflock.network.rules import subnet as whole
from teraflock.network.walls import Borders
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, put_row
from teraflock.tenant.model import ProjectId

_ACL: Final = Table("acl", Acl, leave_out=("rules", "subnets"))
_RULE: Final = Table("acl_rule", AclRule)


def acls(tx: Transaction, project: ProjectId) -> tuple[Acl, ...]:
    """The ACLs of a project by name."""
    rules: dict[str, list[AclRule]] = defaultdict(list)
    for row in tx.all(
        f"SELECT acl_id, {_RULE.names} FROM acl_rule WHERE acl_id IN (SELECT id FROM acl WHERE project_id = :project)",
        project=project,
    ):
        rules[row[0]].append(_RULE.value(row[1:]))
    subnets: dict[str, list[str]] = defaultdict(list)
    for id, network, subnet in tx.all(
        "SELECT acl_id, network, subnet FROM acl_attachment WHERE project_id = :project", project=project
    ):
        subnets[id].append(f"{network}/{subnet}")
    return tuple(
        replace(each, rules=tuple(sorted(rules[each.id])), subnets=tuple(sorted(subnets[each.id])))
        for each in _ACL.all(tx, "WHERE project_id = :project ORDER BY name", project=project)
    )


def insert(tx: Transaction, acl: Acl) -> None:
    _ACL.add(tx, acl)


def add_rule(tx: Transaction, id: str, rule: AclRule) -> None:
    _RULE.add(tx, rule, acl_id=id)


def remove_rule(tx: Transaction, id: str, direction: str, number: int) -> None:
    tx.run(
        "DELETE FROM acl_rule WHERE acl_id = :id AND direction = :direction AND number = :number",
        id=id,
        direction=direction,
        number=number,
    )


def attach(tx: Transaction, project: ProjectId, network: str, subnet: str, id: str) -> None:
    """Let this ACL guard a subnet, in place of the one that did."""
    put_row(
        tx,
        "acl_attachment",
        "project_id network subnet",
        project_id=project,
        network=network,
        subnet=subnet,
        acl_id=id,
    )


def detach(tx: Transaction, project: ProjectId, network: str, subnet: str) -> None:
    tx.run(
        "DELETE FROM acl_attachment WHERE project_id = :project AND network = :network AND subnet = :subnet",
        project=project,
        network=network,
        subnet=subnet,
    )


def attachments(tx: Transaction, project: ProjectId, network: str) -> dict[str, str]:
    """The name of the ACL of each guarded subnet of a network, by the subnet's name."""
    rows = tx.all(
        "SELECT t.subnet, a.name FROM acl_attachment t JOIN acl a ON a.id = t.acl_id"
        " WHERE t.project_id = :project AND t.network = :network ORDER BY t.subnet",
        project=project,
        network=network,
    )
    return {row[0]: row[1] for row in rows}


def remove(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM acl_rule WHERE acl_id = :id", id=id)
    tx.run("DELETE FROM acl WHERE id = :id", id=id)


def remove_all_of(tx: Transaction, project: ProjectId) -> None:
    tx.run("DELETE FROM acl_attachment WHERE project_id = :id", id=project)
    tx.run("DELETE FROM acl_rule WHERE acl_id IN (SELECT id FROM acl WHERE project_id = :id)", id=project)
    tx.run("DELETE FROM acl WHERE project_id = :id", id=project)


def borders_in_all_projects(tx: Transaction, only: ProjectId | None = None) -> Borders:
    """What guards each subnet of every network that has an ACL anywhere; `only`: of one project."""
    rows = tx.all(
        "SELECT n.number, t.subnet, t.acl_id FROM acl_attachment t"
        " JOIN network n ON n.project_id = t.project_id AND n.name = t.network AND n.removed_at_us IS NULL"
        " WHERE :only = '' OR t.project_id = :only",
        only=only or "",
    )
    guards = {(int(number), subnet): acl for number, subnet, acl in rows}
    if not guards:
        return {}
    rules = _rules_of(tx, set(guards.values()))
    parts = tx.all(
        "SELECT n.number, s.name, s.cidr FROM subnet s JOIN network n ON n.id = s.network_id"
        " WHERE n.removed_at_us IS NULL AND EXISTS"
        " (SELECT 1 FROM acl_attachment t WHERE t.project_id = n.project_id AND t.network = n.name)"
    )
    every = [(int(number), name, cidr) for number, name, cidr in parts]
    every += [(number, DEFAULT, str(whole(number))) for number in {number for number, _ in guards}]
    numbers = {number for number, _ in guards}
    return {
        cidr: rules[guards[number, name]] if (number, name) in guards else None
        for number, name, cidr in every
        if number in numbers
    }


def _rules_of(tx: Transaction, ids: set[str]) -> dict[str, tuple[AclRule, ...]]:
    return {id: tuple(sorted(_RULE.all(tx, "WHERE acl_id = :id", id=id))) for id in sorted(ids)}
