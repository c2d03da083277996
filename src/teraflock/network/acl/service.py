"""What the edges ask of network ACLs. The loop for security groups loads the attached ones into hosts."""

import os
from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, NotFound, Refused, not_found
from teraflock.base.ids import new_id
from teraflock.network.acl import store
from teraflock.network.acl.model import Acl, AclId, AclRule
from teraflock.network.acl.rules import ACLS_MAX, RULES_MAX
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.service import Audit
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.names import check_name

T = TypeVar("T")


class AclService:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes] = os.urandom,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._random_bytes = random_bytes
        self._wake = wake
        self._audit = Audit(clock, random_bytes)

    def all(self, project: Project) -> tuple[Acl, ...]:
        with self._database.read() as tx:
            return store.acls(tx, project.id)

    def show(self, project: Project, ref: str) -> Acl:
        with self._database.read() as tx:
            return _named(tx, project, ref)

    def create(self, actor: Actor, project: Project, name: str) -> Acl:
        """A new ACL has no rules and guards nothing. Attached without rules, it would stop everything."""
        check_name("an ACL", name)
        now = self._clock.now()
        id = AclId(new_id("acl", now, self._random_bytes))
        made = Acl(id=id, project_id=project.id, name=name, attached=False, created_at=now)

        def work(tx: Transaction) -> Acl:
            there = store.acls(tx, project.id)
            if any(each.name == name for each in there):
                raise Conflict(f"An ACL `{name}` already exists", hint="Choose another name")
            if len(there) >= ACLS_MAX:
                raise Refused(f"A project can have {ACLS_MAX} ACLs", hint="Delete one first")
            store.insert(tx, made)
            self._audit.record(tx, actor, "acl.create", id, project, name=name)
            return made

        return self._act(work)

    def delete(self, actor: Actor, project: Project, ref: str) -> None:
        def work(tx: Transaction) -> None:
            acl = _named(tx, project, ref)
            if acl.attached:
                raise Conflict(f"The ACL `{acl.name}` is in use", hint="Detach it first: `tera acl detach`")
            store.remove(tx, acl.id)
            self._audit.record(tx, actor, "acl.delete", acl.id, project, name=acl.name)

        self._act(work)

    def add(self, actor: Actor, project: Project, ref: str, rule: AclRule) -> Acl:
        def work(tx: Transaction) -> Acl:
            acl = _named(tx, project, ref)
            if any((each.direction, each.number) == (rule.direction, rule.number) for each in acl.rules):
                raise Conflict(
                    f"The ACL `{acl.name}` has a rule {rule.number} for `{rule.direction}` already",
                    hint=f"Use another number, or remove it: `tera acl remove {acl.name} {rule.number}`",
                )
            if len(acl.rules) >= RULES_MAX:
                raise Refused(f"An ACL can have {RULES_MAX} rules", hint="Remove one first")
            store.add_rule(tx, acl.id, rule)
            number, action = rule.number, str(rule.action)
            self._audit.record(
                tx, actor, "acl.add", acl.id, project, name=acl.name, number=number, action=action
            )
            return replace(acl, rules=tuple(sorted((*acl.rules, rule))))

        return self._act(work)

    def remove(self, actor: Actor, project: Project, ref: str, direction: str, number: int) -> Acl:
        def work(tx: Transaction) -> Acl:
            acl = _named(tx, project, ref)
            left = tuple(each for each in acl.rules if (each.direction, each.number) != (direction, number))
            if left == acl.rules:
                raise NotFound(
                    f"The ACL `{acl.name}` has no rule {number} for `{direction[:10]}`",
                    hint=f"`tera acl show {acl.name}` lists its rules",
                )
            store.remove_rule(tx, acl.id, direction, number)
            self._audit.record(tx, actor, "acl.remove", acl.id, project, name=acl.name, number=number)
            return replace(acl, rules=left)

        return self._act(work)

    def attach(self, actor: Actor, project: Project, ref: str) -> Acl:
        """Let this ACL guard the project's network, in place of the one that did."""

        def work(tx: Transaction) -> Acl:
            acl = _named(tx, project, ref)
            store.attach(tx, project.id, acl.id)
            self._audit.record(tx, actor, "acl.attach", acl.id, project, name=acl.name)
            return replace(acl, attached=True)

        return self._act(work)

    def detach(self, actor: Actor, project: Project, ref: str) -> Acl:
        def work(tx: Transaction) -> Acl:
            acl = _named(tx, project, ref)
            if not acl.attached:
                raise Conflict(
                    f"The ACL `{acl.name}` is not attached", hint="`tera acl list` shows which one is"
                )
            store.attach(tx, project.id, "")
            self._audit.record(tx, actor, "acl.detach", acl.id, project, name=acl.name)
            return replace(acl, attached=False)

        return self._act(work)

    def _act(self, work: Callable[[Transaction], T]) -> T:
        done = self._database.write(work)
        self._wake()
        return done


def _named(tx: Transaction, project: Project, ref: str) -> Acl:
    found = store.acls(tx, project.id)
    for acl in found:
        if ref in (acl.name, acl.id):
            return acl
    raise not_found("ACL", ref, [each.name for each in found], see="`tera acl list` lists them")
