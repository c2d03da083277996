"""All SQL for network ACLs."""

from collections import defaultdict
from typing import Final

from msgspec.structs import replace

from teraflock.network.acl.model import Acl, AclAction, AclRule
from teraflock.network.security_group.model import Direction, Protocol
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table
from teraflock.tenant.model import ProjectId

_ACL: Final = Table("acl", Acl, leave_out=("rules",))
_RULE: Final = "direction, number, action, protocol, port_first, port_last, peer"


def acls(tx: Transaction, project: ProjectId) -> tuple[Acl, ...]:
    """The ACLs of a project by name."""
    rules: dict[str, list[AclRule]] = defaultdict(list)
    for row in tx.all(
        f"SELECT acl_id, {_RULE} FROM acl_rule WHERE acl_id IN (SELECT id FROM acl WHERE project_id = :project)",
        project=project,
    ):
        rules[row[0]].append(_rule(row[1:]))
    rows = tx.all(f"{_ACL.select} WHERE project_id = :project ORDER BY name", project=project)
    found = (_ACL.value(row) for row in rows)
    return tuple(replace(each, rules=tuple(sorted(rules[each.id]))) for each in found)


def insert(tx: Transaction, acl: Acl) -> None:
    _ACL.add(tx, acl)


def add_rule(tx: Transaction, id: str, rule: AclRule) -> None:
    tx.run(
        f"INSERT INTO acl_rule (acl_id, {_RULE})"
        " VALUES (:id, :direction, :number, :action, :protocol, :first, :last, :peer)",
        id=id,
        direction=rule.direction,
        number=rule.number,
        action=rule.action,
        protocol=rule.protocol,
        first=rule.port_first,
        last=rule.port_last,
        peer=rule.peer,
    )


def remove_rule(tx: Transaction, id: str, direction: str, number: int) -> None:
    tx.run(
        "DELETE FROM acl_rule WHERE acl_id = :id AND direction = :direction AND number = :number",
        id=id,
        direction=direction,
        number=number,
    )


def attach(tx: Transaction, project: ProjectId, id: str) -> None:
    """Let this ACL guard the project's network, and no other; empty: none."""
    tx.run("UPDATE acl SET attached = 0 WHERE project_id = :project AND attached = 1", project=project)
    tx.run("UPDATE acl SET attached = 1 WHERE project_id = :project AND id = :id", project=project, id=id)


def remove(tx: Transaction, id: str) -> None:
    tx.run("DELETE FROM acl_rule WHERE acl_id = :id", id=id)
    tx.run("DELETE FROM acl WHERE id = :id", id=id)


def remove_all_of(tx: Transaction, project: ProjectId) -> None:
    tx.run("DELETE FROM acl_rule WHERE acl_id IN (SELECT id FROM acl WHERE project_id = :id)", id=project)
    tx.run("DELETE FROM acl WHERE project_id = :id", id=project)


def attached_in_all_projects(tx: Transaction) -> dict[int, tuple[AclRule, ...]]:
    """The rules that guard each network, by its number."""
    rows = tx.all(
        f"SELECT p.network_number, {', '.join(f'r.{name}' for name in _RULE.split(', '))} FROM acl a"
        " JOIN project p ON p.id = a.project_id LEFT JOIN acl_rule r ON r.acl_id = a.id"
        " WHERE a.attached = 1 AND p.network_number >= 0 ORDER BY p.network_number, r.direction, r.number"
    )
    found: dict[int, tuple[AclRule, ...]] = {}
    for number, *row in rows:
        more = (_rule(tuple(row)),) if row[0] is not None else ()
        found[int(number)] = (*found.get(int(number), ()), *more)
    return found


def _rule(row: Row) -> AclRule:
    direction, number, action, protocol, first, last, peer = row
    return AclRule(
        direction=Direction(direction),
        number=int(number),
        action=AclAction(action),
        protocol=Protocol(protocol),
        port_first=int(first),
        port_last=int(last),
        peer=peer,
    )
