"""What the edges ask of network ACLs. The loop for security groups loads the attached ones into hosts."""

from msgspec.structs import replace

from teraflock.base.errors import Conflict, NotFound, Refused, not_found
from teraflock.base.ids import new_id
from teraflock.base.names import check_name
from teraflock.network import store as networks
from teraflock.network.acl import store
from teraflock.network.acl.model import Acl, AclId, AclRule
from teraflock.network.acl.rules import ACLS_MAX, RULES_MAX
from teraflock.network.model import DEFAULT
from teraflock.storage.database import Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.project.store import claim


class AclService(AuditedService):
    def all(self, project: Project) -> tuple[Acl, ...]:
        with self._database.read() as tx:
            return store.acls(tx, project.id)

    def show(self, project: Project, ref: str) -> Acl:
        with self._database.read() as tx:
            return _named(tx, project, ref)

    def create(self, actor: Actor, project: Project, name: str) -> Acl:
        """A new ACL has no rules and guards nothing. Attached without rules, it would stop everything."""
        check_name(name, "an ACL")
        now = self._clock.now()
        id = AclId(new_id("acl", now, self._random_bytes))
        made = Acl(id=id, project_id=project.id, name=name, created_at=now)

        def work(tx: Transaction) -> Acl:
            there = store.acls(tx, project.id)
            if any(each.name == name for each in there):
                raise Conflict(f"An ACL `{name}` already exists", hint="Choose another name")
            if len(there) >= ACLS_MAX:
                raise Refused(f"A project can have at most {ACLS_MAX} ACLs", hint="Delete one first")
            store.insert(tx, made)
            self._audit.record(tx, actor, "acl.create", id, project, name=name)
            return made

        return self._write(work)

    def delete(self, actor: Actor, project: Project, ref: str) -> None:
        def work(tx: Transaction) -> None:
            acl = _named(tx, project, ref)
            if acl.subnets:
                network, _, subnet = acl.subnets[0].partition("/")
                raise Conflict(
                    f"The ACL `{acl.name}` is in use: it guards {', '.join(f'`{each}`' for each in acl.subnets)}",
                    hint=f"Detach it first: `tera acl detach {acl.name} --network {network} --subnet {subnet}`",
                )
            store.remove(tx, acl.id)
            self._audit.record(tx, actor, "acl.delete", acl.id, project, name=acl.name)

        self._write(work)

    def add(self, actor: Actor, project: Project, ref: str, rule: AclRule) -> Acl:
        def work(tx: Transaction) -> Acl:
            acl = _named(tx, project, ref)
            if any((each.direction, each.number) == (rule.direction, rule.number) for each in acl.rules):
                raise Conflict(
                    f"The ACL `{acl.name}` has a rule {rule.number} for `{rule.direction}` already",
                    hint=f"Use another number, or remove it: `tera acl remove {acl.name} {rule.number}`",
                )
            if len(acl.rules) >= RULES_MAX:
                raise Refused(f"An ACL can have at most {RULES_MAX} rules", hint="Remove one first")
            store.add_rule(tx, acl.id, rule)
            number, action = rule.number, str(rule.action)
            self._audit.record(
                tx, actor, "acl.add", acl.id, project, name=acl.name, number=number, action=action
            )
            return replace(acl, rules=tuple(sorted((*acl.rules, rule))))

        return self._write(work)

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

        return self._write(work)

    def attach(
        self, actor: Actor, project: Project, ref: str, *, network: str = DEFAULT, subnet: str = DEFAULT
    ) -> Acl:
        """Let this ACL guard a subnet, in place of the one that did. `default` can be guarded before it exists."""

        def work(tx: Transaction) -> Acl:
            acl = _named(tx, project, ref)
            claim(tx, project.id)  # nobody deletes the subnet meanwhile
            names = _subnet(tx, project, network, subnet)
            store.attach(tx, project.id, *names, acl.id)
            where = "/".join(names)
            self._audit.record(tx, actor, "acl.attach", acl.id, project, name=acl.name, subnet=where)
            return replace(acl, subnets=tuple(sorted({*acl.subnets, where})))

        return self._write(work)

    def detach(
        self, actor: Actor, project: Project, ref: str, *, network: str = DEFAULT, subnet: str = DEFAULT
    ) -> Acl:
        def work(tx: Transaction) -> Acl:
            acl, where = _named(tx, project, ref), f"{network}/{subnet}"
            if where not in acl.subnets:
                raise Conflict(
                    f"The ACL `{acl.name}` is not attached to `{where[:130]}`",
                    hint="`tera acl list` shows where it is",
                )
            store.detach(tx, project.id, network, subnet)
            self._audit.record(tx, actor, "acl.detach", acl.id, project, name=acl.name, subnet=where)
            return replace(acl, subnets=tuple(each for each in acl.subnets if each != where))

        return self._write(work)


def _named(tx: Transaction, project: Project, ref: str) -> Acl:
    found = store.acls(tx, project.id)
    for acl in found:
        if ref in (acl.name, acl.id):
            return acl
    raise not_found("ACL", ref, [each.name for each in found], see="`tera acl list` lists them")


def _subnet(tx: Transaction, project: Project, network: str, subnet: str) -> tuple[str, str]:
    layouts = {each.network.name: each for each in networks.layouts(tx, project.id)}
    if network not in layouts and (network, subnet) == (DEFAULT, DEFAULT):
        return DEFAULT, DEFAULT
    if network not in layouts:
        raise not_found("network", network, layouts, see="`tera network list` lists them")
    names = [DEFAULT, *(each.name for each in layouts[network].subnets)]
    if subnet not in names:
        raise not_found("subnet", subnet, names, see=f"`tera subnet list --network {network}` lists them")
    return network, subnet
