"""What the edges ask of security groups. Every act writes rows and wakes the loop that loads them into firewalls."""

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from teraflock.base.errors import BadInput, Conflict, NotFound, Refused, not_found
from teraflock.base.ids import new_id
from teraflock.base.names import check_name
from teraflock.base.quantities import count_text
from teraflock.network.security_group import store
from teraflock.network.security_group.model import (
    PREFIX,
    GroupId,
    GroupMember,
    Rule,
    SecurityGroup,
)
from teraflock.network.security_group.rules import (
    ALLOW_OUT,
    DEFAULT,
    GROUPS_MAX,
    GROUPS_PER_INSTANCE_MAX,
    RULES_MAX,
    rule_from,
    rule_text,
)
from teraflock.storage.database import Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project

T = TypeVar("T")
Groups = tuple[SecurityGroup, ...]


class SecurityGroupService(AuditedService):
    # Reading

    def all(self, project: Project, *, instance: str = "") -> Groups:
        """The groups of the project, or only those of one instance."""
        with self._database.read() as tx:
            found = _groups(tx, project)
            if not instance:
                return found
            joined = _member(tx, project, instance).groups
            return tuple(each for each in found if each.id in joined)

    def show(self, project: Project, ref: str) -> SecurityGroup:
        with self._database.read() as tx:
            return _named(_groups(tx, project), ref)

    def members(self, project: Project) -> tuple[GroupMember, ...]:
        with self._database.read() as tx:
            return store.members(tx, project.id)

    def member_counts(self, project: Project) -> dict[GroupId, int]:
        """How many instances each group has. Groups without instances are absent."""
        with self._database.read() as tx:
            return store.member_counts(tx, project.id)

    def names_of_members(self, group: SecurityGroup, *, limit: int) -> tuple[str, ...]:
        """The names of the oldest members of a group."""
        with self._database.read() as tx:
            return store.names_of_members(tx, group.id, limit=limit)

    # Acts

    def create(self, actor: Actor, project: Project, name: str) -> SecurityGroup:
        """A new group lets nothing in and everything out."""
        check_name(name, "a security group")
        now = self._clock.now()
        id = GroupId(new_id(PREFIX.rstrip("_"), now, self._random_bytes))

        def work(tx: Transaction, groups: Groups) -> SecurityGroup:
            if any(each.name == name for each in groups):
                raise Conflict(f"A security group `{name}` already exists", hint="Choose another name")
            if len(groups) >= GROUPS_MAX:
                raise Refused(
                    f"A project can have at most {GROUPS_MAX} security groups", hint="Delete one first"
                )
            made = SecurityGroup(id=id, project_id=project.id, name=name, created_at=now, rules=(ALLOW_OUT,))
            store.insert(tx, made)
            self._audit.record(tx, actor, "security_group.create", id, project, name=name)
            return made

        return self._act(project, work)

    def delete(self, actor: Actor, project: Project, ref: str) -> None:
        def work(tx: Transaction) -> None:
            group = _named(_groups(tx, project), ref)
            store.lock_to_remove(tx, group.id)
            if group.name == DEFAULT:
                raise Refused("The group `default` cannot be deleted", hint="Revoke its rules instead")
            instances, others = store.users(tx, group.id)
            if instances:
                raise Conflict(
                    f"The security group `{group.name}` is in use by {_listed(instances)}",
                    hint=f"Detach it first: `tera sg detach {group.name} {instances[0]}`",
                )
            if others:
                raise Conflict(
                    f"Rules of {_listed(others)} name the security group `{group.name}`",
                    hint=f"Revoke them first: `tera sg show {others[0]}` lists its rules",
                )
            store.remove(tx, group.id)
            self._audit.record(tx, actor, "security_group.delete", group.id, project, name=group.name)

        self._database.write_with_locks(work)  # a launch may be about to use it

    def allow(
        self, actor: Actor, project: Project, ref: str, direction: str, protocol: str, ports: str, peer: str
    ) -> tuple[SecurityGroup, Rule]:
        """Add a rule. Nothing changes if the group has it."""

        def work(tx: Transaction, groups: Groups) -> tuple[SecurityGroup, Rule]:
            group = _named(groups, ref)
            rule = rule_from(direction, protocol, ports, peer, {each.name: each.id for each in groups})
            if rule in group.rules:
                return group, rule
            if len(group.rules) >= RULES_MAX:
                raise Refused(
                    f"A security group can have at most {RULES_MAX} rules",
                    hint="Use a larger network or port range, or a second group",
                )
            if rule.names_group:
                store.touch(tx, GroupId(rule.peer))
            store.add_rule(tx, group.id, rule)
            self._note_rule(tx, actor, project, "allow", group, rule)
            return replace(group, rules=tuple(sorted((*group.rules, rule)))), rule

        return self._act(project, work)

    def revoke(self, actor: Actor, project: Project, ref: str, rule_id: str) -> SecurityGroup:
        """Remove a rule. Connections that no other rule allows are cut."""

        def work(tx: Transaction, groups: Groups) -> SecurityGroup:
            group = _named(groups, ref)
            rule = next((each for each in group.rules if each.id == rule_id), None)
            if rule is None:
                raise NotFound(
                    f"The security group `{group.name}` has no rule `{rule_id[:80]}`",
                    hint=f"`tera sg show {group.name}` lists its rules",
                )
            store.remove_rule(tx, group.id, rule)
            self._note_rule(tx, actor, project, "revoke", group, rule)
            return replace(group, rules=tuple(each for each in group.rules if each != rule))

        return self._act(project, work)

    def attach(self, actor: Actor, project: Project, ref: str, instance: str) -> GroupMember:
        """Add an instance to a group. Nothing changes if it is in it."""

        def work(tx: Transaction, groups: Groups) -> GroupMember:
            group, member = _named(groups, ref), _member(tx, project, instance)
            if group.id in member.groups:
                return member
            if member.address is None:
                raise Refused(
                    f"`{member.name}` has no address in the project's network",
                    hint="Security groups work on own hosts. Use the firewall of the cloud for rented machines",
                )
            if len(member.groups) >= GROUPS_PER_INSTANCE_MAX:
                raise Refused(
                    f"An instance can be in at most {GROUPS_PER_INSTANCE_MAX} security groups",
                    hint="Detach one first",
                )
            store.touch(tx, group.id)
            store.join(tx, group.id, [member.instance_id])
            self._note_member(tx, actor, project, "attach", group, member)
            return replace(member, groups=tuple(sorted((*member.groups, group.id))))

        return self._act(project, work)

    def detach(self, actor: Actor, project: Project, ref: str, instance: str) -> GroupMember:
        def work(tx: Transaction, groups: Groups) -> GroupMember:
            group, member = _named(groups, ref), _member(tx, project, instance)
            if group.id not in member.groups:
                raise Conflict(
                    f"`{member.name}` is not in the security group `{group.name}`",
                    hint=f"`tera sg list --instance {member.name}` lists its groups",
                )
            if len(member.groups) == 1:
                raise Refused(
                    f"`{group.name}` is the only security group of `{member.name}`",
                    hint="Attach another group first",
                )
            store.leave(tx, group.id, member.instance_id)
            self._note_member(tx, actor, project, "detach", group, member)
            return replace(member, groups=tuple(each for each in member.groups if each != group.id))

        return self._act(project, work)

    def _act(self, project: Project, work: Callable[[Transaction, Groups], T]) -> T:
        def act(tx: Transaction) -> T:
            store.ensure_default(tx, project.id, project.created_at)
            return work(tx, _groups(tx, project))

        return self._write(act)

    def _note_rule(
        self, tx: Transaction, actor: Actor, project: Project, verb: str, group: SecurityGroup, rule: Rule
    ) -> None:
        text = rule_text(rule, store.names(tx, project.id))
        action = f"security_group.{verb}"
        self._audit.record(tx, actor, action, group.id, project, name=group.name, rule=text)

    def _note_member(
        self,
        tx: Transaction,
        actor: Actor,
        project: Project,
        verb: str,
        group: SecurityGroup,
        member: GroupMember,
    ) -> None:
        self._audit.record(
            tx, actor, f"security_group.{verb}", group.id, project, name=group.name, instance=member.name
        )


def join_at_launch(tx: Transaction, project: Project, names: tuple[str, ...]) -> list[GroupId]:
    """The groups of a new instance: those named, or `default`. They cannot be removed until the transaction ends."""
    wanted = tuple(dict.fromkeys(names)) or (DEFAULT,)
    if len(wanted) > GROUPS_PER_INSTANCE_MAX:
        raise BadInput(
            f"An instance can be in at most {GROUPS_PER_INSTANCE_MAX} security groups, not {len(wanted)}",
            hint="Leave some of them out",
        )
    found = store.lock_to_join(tx, project.id, wanted)
    if DEFAULT in wanted and DEFAULT not in found:  # the first launch of the project
        store.ensure_default(tx, project.id, project.created_at)
        found = store.lock_to_join(tx, project.id, wanted)
    for name in wanted:
        if name not in found:
            _named(_groups(tx, project), name)
    return [found[name] for name in wanted]


def _groups(tx: Transaction, project: Project) -> Groups:
    return store.groups(tx, project.id, project.created_at)


def _named(groups: Groups, ref: str) -> SecurityGroup:
    for group in groups:
        if ref in (group.name, group.id):
            return group
    names = [each.name for each in groups]
    raise not_found("security group", ref, names, see="`tera sg list` lists them")


def _member(tx: Transaction, project: Project, ref: str) -> GroupMember:
    found = store.members(tx, project.id, ref) if ref else ()
    if not found:
        raise NotFound(f"There is no instance `{ref[:80]}`", hint="`tera ps` lists them")
    return found[0]


def _listed(names: list[str]) -> str:
    first = ", ".join(f"`{name}`" for name in names[:3])
    return first if len(names) <= 3 else f"{first} and {count_text(len(names) - 3, 'other')}"
