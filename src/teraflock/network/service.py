"""What the edges ask of networks: list, create and delete them. Launches create the network `default`.

Every change claims the project, as launches do, so no instance joins a network while it is deleted.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, Conflict, Refused, not_found
from teraflock.base.ids import new_id
from teraflock.base.names import check_name
from teraflock.network import store
from teraflock.network.acl import store as acls
from teraflock.network.interfaces import subnet_of
from teraflock.network.model import DEFAULT, Layout, NetworkId, ProjectNetwork, SubnetView, Tenancy
from teraflock.network.naming import SUBDOMAIN
from teraflock.network.peering import store as peerings
from teraflock.network.peering.model import Peering
from teraflock.network.rules import NETWORKS_KEPT, NETWORKS_MAX, number_of
from teraflock.storage.database import Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed
from teraflock.tenant.project.store import lock_networks
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.tenant.quota.store import name_and_quota

PER_PROJECT_MAX: Final = 20
PER_ORGANISATION_MAX: Final = 200
"""Whatever the quota says: all tenants share the numbers. Projects still get their network `default`."""


class NetworkView(msgspec.Struct, frozen=True, kw_only=True):
    """A network as a tenant sees it."""

    network: ProjectNetwork
    subnets: tuple[SubnetView, ...]
    tenancies: tuple[Tenancy, ...]
    """The instances in it."""
    peerings: tuple[Peering, ...]


class NetworkService(AuditedService):
    def all(self, project: Project, *, with_instances: bool = True) -> tuple[NetworkView, ...]:
        """The networks of a project. A large project is read much faster without its instances."""
        with self._database.read() as tx:
            tenancies = store.tenancies(tx, project.id) if with_instances else ()
            return tuple(_view(tx, each, tenancies) for each in store.layouts(tx, project.id))

    def show(self, project: Project, ref: str) -> NetworkView:
        with self._database.read() as tx:
            return _view(tx, named(tx, project, ref), store.tenancies(tx, project.id))

    def create(self, actor: Actor, project: Project, name: str) -> NetworkView:
        check_name(name, "a network")
        if name == SUBDOMAIN:  # the names of its instances would be those of balancers
            raise BadInput(f"`{name}` is the name of all balancers in DNS", hint="Choose another name")

        def work(tx: Transaction) -> NetworkView:
            fresh = claimed(tx, project)
            check_active(tx, project.organisation_id)
            layouts = store.layouts(tx, project.id)
            if any(each.network.name == name for each in layouts):
                raise Conflict(f"A network `{name}` already exists", hint="Choose another name")
            if len(layouts) >= PER_PROJECT_MAX:
                raise Refused(
                    f"A project can have at most {PER_PROJECT_MAX} networks", hint="Delete one first"
                )
            if store.count_of_organisation(tx, project.organisation_id) >= PER_ORGANISATION_MAX:
                raise Refused(
                    f"The projects of an organisation can have at most {PER_ORGANISATION_MAX} networks together",
                    hint="Delete a network in one of its projects first",
                )
            made = new_network(tx, actor, fresh, name, self._clock.now(), self._random_bytes)
            self._audit.record(tx, actor, "network.create", made.id, project, name=name, cidr=str(made.cidr))
            return _view(tx, Layout(network=made), ())

        return self._database.write_with_locks(work)

    def delete(self, actor: Actor, project: Project, ref: str) -> None:
        """Delete a network without instances. Its peerings end; the loop removes it from the hosts."""

        def work(tx: Transaction) -> None:
            claimed(tx, project)
            layout = named(tx, project, ref)
            network = layout.network
            check_unused(f"network `{network.name}`", _inside(layout, store.tenancies(tx, project.id)))
            if guarded := acls.attachments(tx, project.id, network.name):
                subnet, acl = next(iter(guarded.items()))
                raise Conflict(
                    f"The ACL `{acl}` guards the subnet `{subnet}` of the network `{network.name}`",
                    hint=f"Detach it first: `tera acl detach {acl} --network {network.name} --subnet {subnet}`",
                )
            peerings.end_all(tx, network)
            store.mark_removed(tx, network, self._clock.now())
            self._audit.record(tx, actor, "network.delete", network.id, project, name=network.name)

        self._write_with_locks(work)


def new_network(
    tx: Transaction,
    actor: Actor,
    project: Project,
    name: str,
    now: datetime,
    random_bytes: Callable[[int], bytes],
) -> ProjectNetwork:
    """Add a network with the lowest free number. The caller has claimed the project. The last few are for operators."""
    _check_quota(tx, project)
    lock_networks(tx)
    number = store.free_number_in_all_projects(tx)
    if number >= NETWORKS_MAX - (0 if actor.is_operator else NETWORKS_KEPT):
        raise Refused(
            f"All {NETWORKS_MAX} networks are in use",
            hint="Delete networks and projects that you no longer need",
        )
    id = NetworkId(new_id("net", now, random_bytes))
    made = ProjectNetwork(
        id=id, project_id=project.id, name=name, number=number, engine_key=id, created_at=now
    )
    store.insert(tx, made)
    return made


def layouts_to_launch(
    tx: Transaction,
    actor: Actor,
    project: Project,
    now: datetime,
    random_bytes: Callable[[int], bytes],
    *,
    with_default: bool,
) -> tuple[Layout, ...]:
    """The project's networks. `with_default`: with `default`, which is created if it does not exist."""
    found = store.layouts(tx, project.id)
    if with_default and all(each.network.name != DEFAULT for each in found):
        made = new_network(tx, actor, project, DEFAULT, now, random_bytes)
        return (*found, Layout(network=made))
    return found


def named(tx: Transaction, project: Project, ref: str) -> Layout:
    found = store.layouts(tx, project.id)
    for layout in found:
        if ref in (layout.network.name, layout.network.id):
            return layout
    see = "`tera network list` lists them. The first launch creates `default`"
    raise not_found("network", ref, [each.network.name for each in found], see=see)


def check_unused(what: str, tenancies: tuple[Tenancy, ...]) -> None:
    if tenancies:
        names = list(dict.fromkeys(f"`{each.instance}`" for each in tenancies))
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise Conflict(
            f"The {what} is in use by {', '.join(names[:3])}{more}",
            hint="Delete these instances and balancers first",
        )


def _inside(layout: Layout, tenancies: Sequence[Tenancy]) -> tuple[Tenancy, ...]:
    number = layout.network.number
    return tuple(each for each in tenancies if number_of(each.address) == number)


def _view(tx: Transaction, layout: Layout, tenancies: Sequence[Tenancy]) -> NetworkView:
    return NetworkView(
        network=layout.network,
        subnets=tuple(subnet_views(tx, layout, tenancies)),
        tenancies=_inside(layout, tenancies),
        peerings=peerings.of_network(tx, layout.network),
    )


def subnet_views(tx: Transaction, layout: Layout, tenancies: Sequence[Tenancy]) -> list[SubnetView]:
    """The subnets of a network, `default` first. `tenancies`: those of the project."""
    network, inside = layout.network, _inside(layout, tenancies)
    guarded = acls.attachments(tx, network.project_id, network.name)
    found = [(DEFAULT, str(network.cidr), ""), *((each.name, each.cidr, each.id) for each in layout.subnets)]
    return [
        SubnetView(
            network=network.name,
            name=name,
            cidr=cidr,
            acl=guarded.get(name, ""),
            instances=tuple(each.instance for each in inside if subnet_of(layout, each.address) == name),
            id=id,
        )
        for name, cidr, id in found
    ]


def _check_quota(tx: Transaction, project: Project) -> None:
    more, hint = QuotaAmounts(networks=1), "Delete a network, or ask for more: `tera quota show`"
    used = QuotaAmounts(networks=store.count(tx, project.id))
    quotas.check(project.quota, used, more, of=f"project `{project.name}`", hint=hint)
    name, outer = name_and_quota(tx, project.organisation_id)
    whole = QuotaAmounts(networks=store.count_of_organisation(tx, project.organisation_id))
    quotas.check(outer, whole, more, of=f"organisation `{name}`", hint=hint)
