"""What the edges ask of load balancers. The loop for balancers brings changes to hosts."""

import os
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput, Conflict, NotFound, Refused, not_found, one_of
from teraflock.base.ids import new_id
from teraflock.base.names import check_name
from teraflock.fleet.model import HostId
from teraflock.fleet.store import lock_hosts
from teraflock.network.balancer import events, rules, store
from teraflock.network.balancer.certificate import certificate_from
from teraflock.network.balancer.model import (
    PREFIX,
    Balancer,
    BalancerId,
    BalancerOrder,
    BalancerProtocol,
    BalancerSeen,
    Certificate,
    ShownBalancer,
    Target,
)
from teraflock.network.interfaces import InterfaceWish, interfaces
from teraflock.network.peering import store as peerings
from teraflock.network.published_port.rules import chosen
from teraflock.network.published_port.service import check_quota
from teraflock.network.published_port.store import taken
from teraflock.network.security_group import store as groups
from teraflock.network.service import layouts_to_launch
from teraflock.network.store import tenancies
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed

LIST: Final = "`tera lb list` lists them"


class Hosting(msgspec.Struct, frozen=True, kw_only=True):
    """What the service asks of engines."""

    can: Callable[[str], bool] = lambda site: True
    """Whether a site can run balancers."""
    linked: Callable[[Transaction], Collection[str]] = lambda tx: ()
    """Sites that share the networks of projects."""
    seen: Callable[[Balancer], BalancerSeen | None] = lambda balancer: None
    """What a balancer reports; None: its host does not answer."""
    seal: Callable[[str, str], str] = lambda text, bound_to: text
    """Encrypts a key."""


class BalancerService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        hosting: Hosting,
        random_bytes: Callable[[int], bytes] = os.urandom,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(database, clock, random_bytes, wake)
        self._hosting = hosting

    def all(self, project: Project) -> tuple[ShownBalancer, ...]:
        with self._database.read() as tx:
            return self._shown(tx, project)

    def show(self, project: Project, ref: str) -> ShownBalancer:
        """One balancer, with what it reports now."""
        with self._database.read() as tx:
            found = self._named(tx, project, ref)
        return msgspec.structs.replace(found, seen=self._hosting.seen(found.balancer))

    def create(self, actor: Actor, project: Project, order: BalancerOrder) -> ShownBalancer:
        _check(order)
        now = self._clock.now()
        certificate = _certificate(order, now=now)
        id = BalancerId(new_id(PREFIX, now, self._random_bytes))
        sealed = self._hosting.seal(certificate.key, id) if certificate else ""

        def work(tx: Transaction) -> ShownBalancer:
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            _check_name_is_free(store.of_project(tx, project.id), order.name)
            named = _instances(tx, project, order.instances)
            rules.check_networks(named, _near(tx, fresh))
            site, host = self._place(tx, project, named, order.label)
            groups.ensure_default(tx, project.id, project.created_at)
            made = msgspec.structs.replace(
                _blank(order, id=id, project=fresh, now=now),
                site=site,
                host_id=host,
                address=self._address(tx, actor, fresh),
                published=_published(tx, fresh, order, host),
                certificate=certificate.chain if certificate else "",
                sealed_key=sealed,
                certificate_ends_at=certificate.ends_at if certificate else None,
                created_by=actor.member_id,
            )
            store.insert(tx, made)
            events.record_place(tx, made, now, self._random_bytes)
            store.add_backends(tx, id, (each.instance_id for each in named))
            self._audit.record(tx, actor, "balancer.create", id, project, name=order.name, port=order.port)
            return self._named(tx, project, id)

        return self._write_with_locks(work)

    def add(self, actor: Actor, project: Project, ref: str, instances: tuple[str, ...]) -> ShownBalancer:
        """Add backends. Those that it has already are kept."""

        def work(tx: Transaction) -> ShownBalancer:
            fresh = claimed(tx, project)
            balancer = self._named(tx, project, ref).balancer
            named = _instances(tx, project, instances)
            rules.check_networks(named, _near(tx, fresh))
            rules.check_targets(named, balancer.site, self._hosting.linked(tx))
            ids = {each.instance_id for each in named}
            rules.check_count(len(store.named(tx, balancer.id) | ids))
            store.add_backends(tx, balancer.id, ids)
            self._note(tx, actor, project, "add", balancer, named)
            return self._named(tx, project, balancer.id)

        return self._write_with_locks(work)

    def remove(self, actor: Actor, project: Project, ref: str, instances: tuple[str, ...]) -> ShownBalancer:
        """Remove backends that were named. Connections to them go on until they end."""

        def work(tx: Transaction) -> ShownBalancer:
            claimed(tx, project)
            balancer = self._named(tx, project, ref).balancer
            named = _instances(tx, project, instances)
            there = store.named(tx, balancer.id)
            for each in named:
                if each.instance_id not in there:
                    raise NotFound(
                        f"`{each.name}` is not a named backend of `{balancer.name}`",
                        hint="A backend by label leaves when its label changes: `tera label`",
                    )
            store.remove_backends(tx, balancer.id, (each.instance_id for each in named))
            self._note(tx, actor, project, "remove", balancer, named)
            return self._named(tx, project, balancer.id)

        return self._write_with_locks(work)

    def delete(self, actor: Actor, project: Project, ref: str) -> None:
        """Its address and port are free again when its host has removed it."""

        def work(tx: Transaction) -> None:
            claimed(tx, project)
            balancer = self._named(tx, project, ref).balancer
            if not balancer.ending:
                store.end(tx, balancer.id)
                self._note(tx, actor, project, "delete", balancer, ())

        self._write_with_locks(work)

    def _address(self, tx: Transaction, actor: Actor, project: Project) -> str:
        """A free address of the network `default`, which is created if it does not exist."""
        layouts = layouts_to_launch(
            tx, actor, project, self._clock.now(), self._random_bytes, with_default=True
        )
        taken = {each.address for each in tenancies(tx, project.id)}
        ((interface,),) = interfaces(InterfaceWish(), layouts, taken, 1)
        return interface.address

    def _place(
        self, tx: Transaction, project: Project, named: tuple[Target, ...], label: str
    ) -> tuple[str, str]:
        """The site and host of the balancer: those of its first backend, or of any host."""
        targets = named or (store.labelled(tx, project.id, *rules.label_from(label)) if label else ())
        if targets:
            first = targets[0]
            rules.check_targets(named or targets[:1], first.site, self._hosting.linked(tx))
            if first.host_id is not None and self._hosting.can(first.site):
                return first.site, first.host_id
            raise Refused(
                f"The site `{first.site}` cannot run balancers",
                hint="Balancers run on own hosts with `haproxy` installed: `scripts/engine-install`",
            )
        for host in store.hosts(tx):
            if host.state == "ready" and self._hosting.can(host.site):
                return host.site, host.id
        raise Refused("No host can run a balancer", hint="Balancers run on own hosts: see `tera host list`")

    def _note(
        self,
        tx: Transaction,
        actor: Actor,
        project: Project,
        verb: str,
        balancer: Balancer,
        targets: Iterable[Target],
    ) -> None:
        names = ", ".join(each.name for each in targets)
        action = f"balancer.{verb}"
        self._audit.record(tx, actor, action, balancer.id, project, name=balancer.name, instances=names)

    def _named(self, tx: Transaction, project: Project, ref: str) -> ShownBalancer:
        found = self._shown(tx, project)
        for each in found:
            if ref in (each.balancer.name, each.balancer.id):
                return each
        raise not_found("balancer", ref, [each.balancer.name for each in found], see=LIST)

    def _shown(self, tx: Transaction, project: Project) -> tuple[ShownBalancer, ...]:
        hosts = store.host_addresses(tx, project.id)
        targets = store.targets(tx, project.id, self._hosting.linked(tx))
        return tuple(
            ShownBalancer(
                balancer=each,
                domain=f"{project.name}.internal",
                host_address=hosts.get(each.host_id, ""),
                targets=targets.get(each.id, ()),
            )
            for each in store.of_project(tx, project.id)
        )


def _check(order: BalancerOrder) -> None:
    check_name(order.name, "a balancer")
    one_of("protocol", order.protocol, tuple(BalancerProtocol))
    rules.check_port(order.port, "--port")
    if order.target_port is not None:
        rules.check_port(order.target_port, "--to-port")
    rules.check_health_check(order.health_check)
    rules.check_check_seconds(order.check_seconds)
    rules.label_from(order.label)
    rules.check_count(len(set(order.instances)))
    if not order.instances and not order.label:
        raise BadInput(
            "A balancer needs backends", hint="Name instances with `--to web-1`, or `--to label=app=web`"
        )
    if bool(order.certificate) != bool(order.key):
        raise BadInput("TLS needs a certificate and its key", hint="Give both `--certificate` and `--key`")


def _certificate(order: BalancerOrder, *, now: datetime) -> Certificate | None:
    return certificate_from(order.certificate, order.key, now=now) if order.certificate else None


def _blank(order: BalancerOrder, *, id: BalancerId, project: Project, now: datetime) -> Balancer:
    key, value = rules.label_from(order.label)
    return Balancer(
        id=id,
        project_id=project.id,
        name=order.name,
        site="",
        host_id="",
        address="",
        protocol=BalancerProtocol(order.protocol),
        port=order.port,
        target_port=order.target_port or order.port,
        health_check=order.health_check,
        check_seconds=order.check_seconds,
        label_key=key,
        label_value=value,
        created_at=now,
    )


def _check_name_is_free(there: tuple[Balancer, ...], name: str) -> None:
    if any(each.name == name for each in there):
        raise Conflict(f"A balancer `{name}` already exists", hint="Choose another name")
    if len(there) >= rules.BALANCERS_MAX:
        raise Refused(f"A project can have at most {rules.BALANCERS_MAX} balancers", hint="Delete one first")


def _published(tx: Transaction, project: Project, order: BalancerOrder, host: str) -> int | None:
    if not order.publish and order.published is None:
        return None
    check_quota(tx, project)
    lock_hosts(tx, [HostId(host)])
    return chosen(order.published, taken(tx, host))


def _near(tx: Transaction, project: Project) -> set[int]:
    """The network `default` of a project, and those that are peered with it."""
    own = project.network_number
    return {own, *(each for both in peerings.active_in_all_projects(tx) if own in both for each in both)}


def _instances(tx: Transaction, project: Project, refs: Iterable[str]) -> tuple[Target, ...]:
    found: dict[str, Target] = {}
    for ref in refs:
        each = store.instance(tx, project.id, ref)
        if each is None:
            raise NotFound(f"There is no instance `{ref[:80]}`", hint="`tera ps` lists them")
        found[each.instance_id] = each
    return tuple(found.values())
