"""What the edges ask of public addresses. The loop for security groups brings them to hosts."""

import os
from collections.abc import Callable
from ipaddress import IPv4Network

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, NotFound, Refused, ambiguous_name, not_found
from teraflock.base.ids import new_id
from teraflock.network.address import events, store
from teraflock.network.address.model import (
    PREFIX,
    AddressId,
    AddressTarget,
    PublicAddress,
    ShownAddress,
)
from teraflock.network.address.rules import PER_PROJECT_MAX, chosen
from teraflock.storage.database import Database, Overtaken, Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.tenant.quota.store import name_and_quota


class AddressService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        pool: tuple[IPv4Network, ...],
        random_bytes: Callable[[int], bytes] = os.urandom,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(database, clock, random_bytes, wake)
        self._pool = pool

    def all(self, project: Project) -> tuple[ShownAddress, ...]:
        with self._database.read() as tx:
            return store.of_project(tx, project.id)

    def create(self, actor: Actor, project: Project, wanted: str = "") -> ShownAddress:
        """Take this address of the pool, or the first free one. It is charged from now on."""
        now = self._clock.now()

        def work(tx: Transaction) -> ShownAddress:
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            _check_quota(tx, fresh)
            made = PublicAddress(
                id=AddressId(new_id(PREFIX, now, self._random_bytes)),
                project_id=project.id,
                address=chosen(self._pool, store.taken_in_all_projects(tx), wanted),
                created_by=actor.member_id,
                created_at=now,
            )
            if not store.insert(tx, made):
                raise Overtaken("another project took this address")
            events.record_taken(tx, made, now, self._random_bytes)
            self._audit.record(tx, actor, "address.create", made.id, project, address=made.address)
            return ShownAddress(public=made)

        return self._database.write_with_locks(work)

    def attach(self, actor: Actor, project: Project, ref: str, target_ref: str) -> ShownAddress:
        """Let the address lead to an instance or a balancer, in place of what it led to."""

        def work(tx: Transaction) -> ShownAddress:
            claimed(tx, project)
            found, target = _named(tx, project, ref), _target(tx, project, target_ref)
            for each in store.of_project(tx, project.id):
                if each.public.target_id == target.id and each.public.id != found.public.id:
                    raise Conflict(
                        f"`{target.name}` has the address {each.public.address} already",
                        hint=f"Detach it first: `tera address detach {each.public.address}`",
                    )
            return self._lead(tx, actor, project, found, target)

        return self._write_with_locks(work)

    def detach(self, actor: Actor, project: Project, ref: str) -> ShownAddress:
        def work(tx: Transaction) -> ShownAddress:
            claimed(tx, project)
            return self._lead(tx, actor, project, _named(tx, project, ref), None)

        return self._write_with_locks(work)

    def release(self, actor: Actor, project: Project, ref: str) -> None:
        """Give the address back. It is charged until now."""
        now = self._clock.now()

        def work(tx: Transaction) -> None:
            claimed(tx, project)
            found = _named(tx, project, ref).public
            if store.remove(tx, found.id):
                events.record_released(tx, found, now, self._random_bytes)
                self._audit.record(tx, actor, "address.release", found.id, project, address=found.address)

        self._write_with_locks(work)

    def _lead(
        self,
        tx: Transaction,
        actor: Actor,
        project: Project,
        found: ShownAddress,
        target: AddressTarget | None,
    ) -> ShownAddress:
        public = replace(found.public, target_id=target.id if target else "")
        store.attach(tx, public.id, public.target_id)
        action = "address.attach" if target else "address.detach"
        name = target.name if target else ""
        self._audit.record(tx, actor, action, public.id, project, address=public.address, target=name)
        return ShownAddress(public=public, target=target)


def _named(tx: Transaction, project: Project, ref: str) -> ShownAddress:
    found = store.of_project(tx, project.id)
    for each in found:
        if ref in (each.public.id, each.public.address):
            return each
    known = [each.public.address for each in found]
    raise not_found("public address", ref, known, see="`tera address list` lists them")


def _target(tx: Transaction, project: Project, ref: str) -> AddressTarget:
    found = store.target(tx, project.id, ref)
    if not found:
        raise NotFound(
            f"There is no instance or balancer `{ref[:80]}`", hint="See `tera ps` and `tera lb list`"
        )
    if len(found) > 1:
        raise ambiguous_name("instance or balancer", ref, (f"{each.id} ({each.kind})" for each in found))
    if found[0].private is None:
        raise Refused(
            f"`{found[0].name}` has no address in the project's network",
            hint="Public addresses are for own hosts. A rented machine has its own address",
        )
    return found[0]


def _check_quota(tx: Transaction, project: Project) -> None:
    used = store.count(tx, project.id)
    if used >= PER_PROJECT_MAX:
        raise Refused(
            f"A project can have at most {PER_PROJECT_MAX} public addresses", hint="Release one first"
        )
    more, hint = QuotaAmounts(addresses=1), "Release an address, or ask for more: `tera quota show`"
    quotas.check(project.quota, QuotaAmounts(addresses=used), more, of=f"project `{project.name}`", hint=hint)
    name, outer = name_and_quota(tx, project.organisation_id)
    whole = QuotaAmounts(addresses=store.count_of_organisation(tx, project.organisation_id))
    quotas.check(outer, whole, more, of=f"organisation `{name}`", hint=hint)
