"""What the edges ask of published ports. The loop for security groups opens and closes them on hosts."""

from teraflock.base.errors import Conflict, NotFound, Refused
from teraflock.base.ids import new_id
from teraflock.fleet.model import HostId
from teraflock.fleet.store import lock_hosts
from teraflock.network.balancer import store as balancers
from teraflock.network.published_port import store
from teraflock.network.published_port.model import PublishedPort, PublishedPortId, Publisher, ShownPort
from teraflock.network.published_port.rules import PER_PROJECT_MAX, check_guest_port, chosen
from teraflock.storage.database import Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.tenant.quota.store import name_and_quota


class PublishedPortService(AuditedService):
    def all(self, project: Project, *, instance: str = "") -> tuple[ShownPort, ...]:
        with self._database.read() as tx:
            return store.of_project(tx, project.id, instance=instance)

    def publish(
        self, actor: Actor, project: Project, instance: str, guest_port: int, port: int | None = None
    ) -> ShownPort:
        """Publish a port. One that is published already is returned, unless another port of the host is asked for."""
        check_guest_port(guest_port)

        def work(tx: Transaction) -> ShownPort:
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            target = _publisher(tx, project, instance)
            there = _of(tx, project, target.id, guest_port)
            if there is not None and port in (None, there.published.port):
                return there
            if there is not None:
                raise Conflict(
                    f"Port {guest_port} of `{target.name}` is published as {there.published.port} already",
                    hint=f"Unpublish it first: `tera unpublish {target.name} {guest_port}`",
                )
            check_quota(tx, fresh)
            return self._add(tx, actor, project, target, guest_port, port)

        return self._write_with_locks(work)

    def unpublish(self, actor: Actor, project: Project, id: str) -> ShownPort:
        def work(tx: Transaction) -> ShownPort:
            for each in store.of_project(tx, project.id):
                if each.published.id == id:
                    store.remove(tx, id)
                    self._note(tx, actor, project, "unpublish", each)
                    return each
            raise NotFound(
                f"There is no published port `{id[:80]}`",
                hint="`tera publish` lists the ports of the project",
            )

        return self._write(work)

    def _add(
        self,
        tx: Transaction,
        actor: Actor,
        project: Project,
        target: Publisher,
        guest_port: int,
        port: int | None,
    ) -> ShownPort:
        assert target.host_id is not None, "an instance with an address has a host"
        lock_hosts(tx, [HostId(target.host_id)])
        now = self._clock.now()
        made = PublishedPort(
            id=PublishedPortId(new_id("pub", now, self._random_bytes)),
            project_id=project.id,
            instance_id=target.id,
            host_id=target.host_id,
            port=chosen(port, store.taken(tx, target.host_id)),
            guest_port=guest_port,
            created_at=now,
        )
        store.insert(tx, made)
        shown = _of(tx, project, target.id, guest_port)
        assert shown is not None, "it was just written"
        self._note(tx, actor, project, "publish", shown)
        return shown

    def _note(self, tx: Transaction, actor: Actor, project: Project, verb: str, shown: ShownPort) -> None:
        port = shown.published
        action, where = f"instance.{verb}", f"{port.port} to {port.guest_port}"
        self._audit.record(tx, actor, action, port.instance_id, project, name=shown.instance, port=where)


def _publisher(tx: Transaction, project: Project, ref: str) -> Publisher:
    found = store.publisher(tx, project.id, ref)
    if found is None:
        raise NotFound(f"There is no instance `{ref[:80]}`", hint="`tera ps` lists them")
    if found.address is None:
        raise Refused(
            f"`{found.name}` has no address in the project's network",
            hint="Ports are published on own hosts. A rented machine has its own address",
        )
    return found


def _of(tx: Transaction, project: Project, instance: str, guest_port: int) -> ShownPort | None:
    found = store.of_project(tx, project.id, instance=instance)
    return next((each for each in found if each.published.guest_port == guest_port), None)


def check_quota(tx: Transaction, project: Project) -> None:
    """Raise unless the project may have one more published port, of an instance or a balancer."""
    used = store.count(tx, project.id) + balancers.count_published(tx, project.id)
    if used >= PER_PROJECT_MAX:
        raise Refused(
            f"A project can have at most {PER_PROJECT_MAX} published ports", hint="Unpublish one first"
        )
    more, hint = QuotaAmounts(ports=1), "Unpublish a port, or ask for more: `tera quota show`"
    quotas.check(project.quota, QuotaAmounts(ports=used), more, of=f"project `{project.name}`", hint=hint)
    name, outer = name_and_quota(tx, project.organisation_id)
    home = project.organisation_id
    whole = QuotaAmounts(
        ports=store.count_of_organisation(tx, home) + balancers.count_published_of_organisation(tx, home)
    )
    quotas.check(outer, whole, more, of=f"organisation `{name}`", hint=hint)
