"""What the edges ask of subnets."""

from ipaddress import IPv4Address, IPv4Network

from teraflock.base.errors import BadInput, Conflict, not_found
from teraflock.base.ids import new_id
from teraflock.base.names import check_name
from teraflock.network import store
from teraflock.network.acl import store as acls
from teraflock.network.model import DEFAULT, Layout, Subnet, SubnetId, SubnetView
from teraflock.network.service import check_unused, layouts_to_launch, named, subnet_views
from teraflock.network.subnet.rules import placed
from teraflock.storage.database import Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.project.claim import claimed


class SubnetService(AuditedService):
    def all(self, project: Project, *, network: str = "") -> tuple[SubnetView, ...]:
        """The subnets of a network, or of all networks."""
        with self._database.read() as tx:
            layouts = (named(tx, project, network),) if network else store.layouts(tx, project.id)
            inside = store.tenancies(tx, project.id)
            return tuple(view for each in layouts for view in subnet_views(tx, each, inside))

    def show(self, project: Project, network: str, ref: str) -> SubnetView:
        with self._database.read() as tx:
            layout = named(tx, project, network or DEFAULT)
            name = ref if ref == DEFAULT else _subnet(layout, ref).name
            views = subnet_views(tx, layout, store.tenancies(tx, project.id))
            return next(each for each in views if each.name == name)

    def create(
        self, actor: Actor, project: Project, name: str, *, network: str, cidr: str, prefix: int | None
    ) -> SubnetView:
        check_name(name, "a subnet")

        def work(tx: Transaction) -> SubnetView:
            fresh, now = claimed(tx, project), self._clock.now()
            check_active(tx, project.organisation_id)
            if (network or DEFAULT) == DEFAULT:
                layouts_to_launch(tx, actor, fresh, now, self._random_bytes, with_default=True)
            layout = named(tx, project, network or DEFAULT)
            taken = [each.address for each in store.tenancies(tx, project.id)]
            made = self._add(tx, layout, name, str(placed(layout, name, cidr, prefix, taken)))
            self._audit.record(tx, actor, "subnet.create", made.id, project, name=name, cidr=made.cidr)
            return SubnetView(
                network=layout.network.name, name=name, cidr=made.cidr, acl="", instances=(), id=made.id
            )

        return self._write_with_locks(work)

    def _add(self, tx: Transaction, layout: Layout, name: str, cidr: str) -> Subnet:
        now = self._clock.now()
        made = Subnet(
            id=SubnetId(new_id("sub", now, self._random_bytes)),
            project_id=layout.network.project_id,
            network_id=layout.network.id,
            name=name,
            cidr=cidr,
            created_at=now,
        )
        store.insert_subnet(tx, made)
        return made

    def delete(self, actor: Actor, project: Project, network: str, ref: str) -> None:
        """Delete a subnet without instances and ACL. Its addresses belong to `default` again."""
        if ref == DEFAULT:
            raise BadInput("The subnet `default` cannot be deleted", hint="Delete its network instead")

        def work(tx: Transaction) -> None:
            claimed(tx, project)
            layout = named(tx, project, network or DEFAULT)
            found = _subnet(layout, ref)
            inside = IPv4Network(found.cidr)
            tenancies = store.tenancies(tx, project.id)
            used = tuple(each for each in tenancies if IPv4Address(each.address) in inside)
            check_unused(f"subnet `{found.name}`", used)
            if acl := acls.attachments(tx, project.id, layout.network.name).get(found.name):
                where = f"--network {layout.network.name} --subnet {found.name}"
                raise Conflict(
                    f"The ACL `{acl}` guards the subnet `{found.name}`",
                    hint=f"Detach it first: `tera acl detach {acl} {where}`",
                )
            store.remove_subnet(tx, found.id)
            self._audit.record(tx, actor, "subnet.delete", found.id, project, name=found.name)

        self._write_with_locks(work)


def _subnet(layout: Layout, ref: str) -> Subnet:
    for each in layout.subnets:
        if ref in (each.name, each.id):
            return each
    names = [each.name for each in layout.subnets]
    raise not_found("subnet", ref, names, see="`tera subnet list` lists them")
