"""All SQL for security groups, their rules and members.

A project's `default` group has no row until something uses it. Its id follows from the project's, so `ensure_default`
can be called by several transactions at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from teraflock.network.security_group.model import (
    GroupId,
    GroupMember,
    Rule,
    SecurityGroup,
)
from teraflock.network.security_group.rules import default_group
from teraflock.network.store import addresses_from
from teraflock.storage.database import Row, Transaction
from teraflock.storage.table import Table, add_missing_row
from teraflock.tenant.model import ProjectId

_GROUP: Final = Table("security_group", SecurityGroup, leave_out=("rules",))
_RULE: Final = Table("security_group_rule", Rule)


# Groups and their rules


def groups(tx: Transaction, project: ProjectId, created_at: datetime) -> tuple[SecurityGroup, ...]:
    """The groups of a project by name, with `default`. `created_at`: the project's, for a `default` without a row."""
    rules: dict[str, list[Rule]] = defaultdict(list)
    for id, *row in tx.all(
        f"SELECT group_id, {_RULE.names} FROM security_group_rule"
        " WHERE group_id IN (SELECT id FROM security_group WHERE project_id = :project)",
        project=project,
    ):
        rules[id].append(_RULE.value(tuple(row)))
    stored = _GROUP.all(tx, "WHERE project_id = :project", project=project)
    found = [msgspec.structs.replace(each, rules=tuple(sorted(rules[each.id]))) for each in stored]
    default = default_group(project, created_at)
    if all(each.id != default.id for each in found):
        found.append(default)
    return tuple(sorted(found, key=lambda each: each.name))


def names(tx: Transaction, project: ProjectId) -> dict[str, str]:
    """The names of the project's groups, by id."""
    return dict(tx.all("SELECT id, name FROM security_group WHERE project_id = :project", project=project))


def ensure_default(tx: Transaction, project: ProjectId, created_at: datetime) -> GroupId:
    group = default_group(project, created_at)
    if tx.one("SELECT 1 FROM security_group WHERE id = :id", id=group.id) is None:
        insert(tx, group)
    return group.id


def insert(tx: Transaction, group: SecurityGroup) -> None:
    """Nothing changes if the group exists."""
    added = tx.run_many(f"{_GROUP.insert} ON CONFLICT DO NOTHING", [_GROUP.row(group)])
    for rule in group.rules if added else ():
        add_rule(tx, group.id, rule)


def add_rule(tx: Transaction, id: GroupId, rule: Rule) -> None:
    tx.run_many(f"{_RULE.insert_with('group_id')} ON CONFLICT DO NOTHING", [(id, *_RULE.row(rule))])
    touch(tx, id)


def remove_rule(tx: Transaction, id: GroupId, rule: Rule) -> None:
    tx.run(
        "DELETE FROM security_group_rule WHERE group_id = :id AND direction = :direction"
        " AND protocol = :protocol AND port_first = :port_first AND port_last = :port_last AND peer = :peer",
        id=id,
        **msgspec.structs.asdict(rule),
    )
    touch(tx, id)


def remove(tx: Transaction, id: GroupId) -> None:
    """Remove a group that no instance and no other group uses."""
    tx.run("DELETE FROM security_group_member WHERE group_id = :id", id=id)  # of deleted instances
    tx.run("DELETE FROM security_group_rule WHERE group_id = :id", id=id)
    tx.run("DELETE FROM security_group WHERE id = :id", id=id)


def remove_all_of(tx: Transaction, project: ProjectId) -> None:
    """Remove the groups of a removed project."""
    of_project = "(SELECT id FROM security_group WHERE project_id = :project)"
    tx.run(f"DELETE FROM security_group_member WHERE group_id IN {of_project}", project=project)
    tx.run(f"DELETE FROM security_group_rule WHERE group_id IN {of_project}", project=project)
    tx.run("DELETE FROM security_group WHERE project_id = :project", project=project)


def users(tx: Transaction, id: GroupId) -> tuple[list[str], list[str]]:
    """The names of the instances in a group, and of the other groups whose rules name it."""
    instances = tx.all(
        "SELECT i.name FROM security_group_member m JOIN instance i ON i.id = m.instance_id"
        " WHERE m.group_id = :id AND i.phase <> 'gone' ORDER BY i.name",
        id=id,
    )
    others = tx.all(
        "SELECT DISTINCT g.name FROM security_group_rule r JOIN security_group g ON g.id = r.group_id"
        " WHERE r.peer = :id AND r.group_id <> :id ORDER BY g.name",
        id=id,
    )
    return [row[0] for row in instances], [row[0] for row in others]


# Members


def members(tx: Transaction, project: ProjectId, ref: str = "") -> tuple[GroupMember, ...]:
    """The project's instances with their groups, by name; with `ref` only this one, by id or name."""
    rows = tx.all(
        "SELECT i.id, i.name, i.address, i.site, i.more_addresses, m.group_id FROM instance i"
        " LEFT JOIN security_group_member m ON m.instance_id = i.id"
        " WHERE i.project_id = :project AND i.phase <> 'gone'"
        " AND (:ref = '' OR i.id = :ref OR i.name = :ref) ORDER BY i.name, m.group_id",
        project=project,
        ref=ref,
    )
    joined: dict[str, list[GroupId]] = defaultdict(list)
    for id, *_, group in rows:
        joined[id] += [GroupId(group)] if group else []
    firsts = {row[0]: row for row in rows}
    return tuple(
        GroupMember(
            instance_id=id,
            name=row[1],
            address=row[2],
            site=row[3],
            groups=tuple(joined[id]),
            more_addresses=addresses_from(row[4]),
        )
        for id, row in firsts.items()
    )


def member_counts(tx: Transaction, project: ProjectId) -> dict[GroupId, int]:
    """How many instances each group of a project has. An instance counts until a loop has forgotten its deletion."""
    rows = tx.all(
        "SELECT group_id, COUNT(*) FROM security_group_member WHERE group_id IN"
        " (SELECT id FROM security_group WHERE project_id = :project) GROUP BY group_id",
        project=project,
    )
    return {GroupId(id): int(count) for id, count in rows}


def names_of_members(tx: Transaction, id: GroupId, *, limit: int) -> tuple[str, ...]:
    """The names of the oldest members of a group."""
    rows = tx.all(
        "SELECT i.name FROM security_group_member m JOIN instance i ON i.id = m.instance_id"
        " WHERE m.group_id = :id AND i.phase <> 'gone' ORDER BY m.instance_id LIMIT :limit",
        id=id,
        limit=limit,
    )
    return tuple(row[0] for row in rows)


def join(tx: Transaction, id: GroupId, instances: Iterable[str]) -> None:
    for instance in instances:
        add_missing_row(tx, "security_group_member", instance_id=instance, group_id=id)


def leave(tx: Transaction, id: GroupId, instance: str) -> None:
    tx.run(
        "DELETE FROM security_group_member WHERE instance_id = :instance AND group_id = :id",
        instance=instance,
        id=id,
    )


def lock_to_join(tx: Transaction, project: ProjectId, names: Iterable[str]) -> Mapping[str, GroupId]:
    """The ids of these groups, which nobody can remove until the transaction ends."""
    wanted = {f"name{number}": name for number, name in enumerate(sorted(names))}
    marks = ", ".join(f":{each}" for each in wanted)
    rows = tx.lock_shared(
        f"SELECT id, name FROM security_group WHERE project_id = :project AND name IN ({marks}) ORDER BY id",
        project=project,
        **wanted,
    )
    return {row[1]: GroupId(row[0]) for row in rows}


def lock_to_remove(tx: Transaction, id: GroupId) -> None:
    """Until the transaction ends nobody begins to use the group."""
    tx.lock("SELECT id FROM security_group WHERE id = :id", id=id)


# For the loops


def members_in_all_projects(tx: Transaction) -> list[Row]:
    """Instance and group of every membership."""
    return tx.all("SELECT instance_id, group_id FROM security_group_member")


def stations_in_all_projects(tx: Transaction) -> list[tuple[str, str, GroupId]]:
    """Site, address and group of every membership and interface. The groups of an address are sorted."""
    rows = tx.all(
        "SELECT i.site, i.address, i.more_addresses, m.group_id FROM security_group_member m"
        " JOIN instance i ON i.id = m.instance_id WHERE i.address IS NOT NULL ORDER BY i.address, m.group_id"
    )
    return [
        (site, address, GroupId(group))
        for site, first, more, group in rows
        for address in (first, *addresses_from(more))
    ]


def versions_in_all_projects(tx: Transaction) -> dict[GroupId, int]:
    return {GroupId(row[0]): int(row[1]) for row in tx.all("SELECT id, version FROM security_group")}


def rules_in_all_projects(tx: Transaction, ids: Iterable[GroupId]) -> dict[GroupId, tuple[Rule, ...]]:
    """The rules of these groups."""
    return {id: tuple(sorted(_RULE.all(tx, "WHERE group_id = :id", id=id))) for id in ids}


def forget_deleted_instances(tx: Transaction) -> int:
    """Remove the memberships of deleted instances."""
    return tx.run(
        "DELETE FROM security_group_member WHERE instance_id IN (SELECT m.instance_id"
        " FROM security_group_member m JOIN instance i ON i.id = m.instance_id WHERE i.phase = 'gone')"
    )


def has_deleted_instances(tx: Transaction) -> bool:
    return (
        tx.one(
            "SELECT 1 FROM security_group_member m JOIN instance i ON i.id = m.instance_id"
            " WHERE i.phase = 'gone' LIMIT 1"
        )
        is not None
    )


def touch(tx: Transaction, id: GroupId) -> None:
    """Count a change. A transaction that begins to use a group writes its row too, and so cannot miss a deletion."""
    tx.run("UPDATE security_group SET version = version + 1 WHERE id = :id", id=id)
