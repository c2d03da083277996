"""What a project's networks look like at one moment: its instances, groups, ACLs, and what it is peered with."""

from collections.abc import Collection, Mapping

from teraflock.base.errors import NotFound, Refused
from teraflock.network import store
from teraflock.network.acl import store as acls
from teraflock.network.address import store as addresses
from teraflock.network.balancer.model import BalancerId
from teraflock.network.balancer.rules import group_of
from teraflock.network.balancer.walls import NAME_PREFIX, BalancerMember, members_of_balancers
from teraflock.network.ipv6 import four
from teraflock.network.peering import store as peerings
from teraflock.network.reach import INTERNET, End, anyone
from teraflock.network.rules import number_of, subnet
from teraflock.network.security_group import store as groups
from teraflock.network.security_group.model import GroupId, GroupMember, Rule, SecurityGroup
from teraflock.network.security_group.rules import is_address
from teraflock.network.walls import Borders, Walls, pair
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Project, ProjectId


class Picture:
    def __init__(self, tx: Transaction, project: Project, linked: Collection[str] = ()) -> None:
        """`linked` sites share the networks of projects."""
        self._linked = linked
        own_groups = groups.groups(tx, project.id, project.created_at)
        balancers, hidden = members_of_balancers(tx, project.id, linked)
        self._balancers = {each.member.instance_id: each for each in balancers}
        self.groups = (*own_groups, *(_group(each, project, hidden) for each in balancers))
        members = (*groups.members(tx, project.id), *(each.member for each in balancers))
        self.members: dict[str, GroupMember] = {each.name: each for each in members}
        self._by_id = {each.instance_id: each for each in self.members.values()}
        self._by_address = {each: member for member in self.members.values() for each in member.addresses}
        self._project = project.id
        own = {each.network.number for each in store.layouts(tx, project.id)}
        active = [both for both in peerings.active_in_all_projects(tx) if not own.isdisjoint(both)]
        self.foreign: dict[str, GroupMember] = {}
        """Instances of other projects in peered networks, by address."""
        borders = {**acls.borders_in_all_projects(tx, project.id)}
        rules: dict[GroupId, tuple[Rule, ...]] = {each.id: each.rules for each in self.groups}
        for number in sorted({number for both in active for number in both} - own):
            more_rules, more_borders = self._look_at(tx, number)
            rules |= more_rules
            borders |= more_borders
        every = {**self._by_address, **self.foreign}
        self.walls = Walls(
            groups=rules,
            stations={address: member.groups for address, member in every.items()},
            borders=borders,
            peers=frozenset(pair(str(subnet(one)), str(subnet(other))) for one, other in active),
        )

    def _look_at(self, tx: Transaction, number: int) -> tuple[dict[GroupId, tuple[Rule, ...]], Borders]:
        """Add the instances of a peered network. Return the rules of their groups, and the ACLs of their project."""
        owner: ProjectId = store.owner_in_all_projects(tx, number)
        balancers, hidden = members_of_balancers(tx, owner, self._linked)
        members = (*groups.members(tx, owner), *(each.member for each in balancers))
        found = {a: each for each in members for a in each.addresses if number_of(a) == number}
        self.foreign |= found
        used = {group for each in found.values() for group in each.groups if group not in hidden}
        rules = {**groups.rules_in_all_projects(tx, sorted(used)), **hidden}
        return rules, acls.borders_in_all_projects(tx, owner)

    def ends(self, tx: Transaction, ref: str) -> tuple[End, ...]:
        """The interfaces of an instance, or one end. Of an instance that is called `internet`, only the id means it."""
        if ref == INTERNET:
            rules = [rule for each in self.walls.groups.values() for rule in each]
            guards = [rule for acl in self.walls.borders.values() for rule in acl or ()]
            return (End(name=INTERNET, address=anyone([*rules, *guards])),)
        member = self.members.get(ref) or self._by_id.get(ref)
        if member is None and is_address(ref):
            return (self._end_at(tx, four(ref)),)
        if member is None:
            hint = (
                "Name an instance (`tera ps` lists them), a balancer as `lb:NAME`, `internet`, or an address"
            )
            kind = "balancer" if ref.startswith(NAME_PREFIX) else "instance"
            raise NotFound(f"There is no {kind} `{ref.removeprefix(NAME_PREFIX)[:80]}`", hint=hint)
        if member.address is None:
            raise Refused(
                f"`{member.name}` has no address in a network of the project",
                hint="Security groups work on own hosts. Use the firewall of the cloud for rented machines",
            )
        return self._interfaces(tx, member)

    def _end_at(self, tx: Transaction, address: str) -> End:
        if target := addresses.target_of(tx, self._project, address):
            return self._interfaces(tx, self._by_id[target])[0]
        if member := self._by_address.get(address):
            return next(each for each in self._interfaces(tx, member) if each.address == address)
        if far := self.foreign.get(address):
            inner = address != far.address
            site = self._place(far.site)
            return End(name=address, address=address, site=site, is_inner=inner, is_foreign=True)
        return End(name=address, address=address)

    def _interfaces(self, tx: Transaction, member: GroupMember) -> tuple[End, ...]:
        if balancer := self._balancers.get(member.instance_id):
            return (self._balancer_end(balancer),)
        ports, allowed = store.surroundings(tx, member.instance_id)
        is_public = store.is_public(tx, member.instance_id)
        return tuple(
            End(
                name=member.name,
                address=address,
                site=self._place(member.site),
                open_ports=ports,
                is_public=is_public and address == member.address,
                allowed_out=allowed,
                is_inner=address != member.address,
            )
            for address in member.addresses
        )

    def _balancer_end(self, balancer: BalancerMember) -> End:
        ports = frozenset({balancer.port} if balancer.is_published else ())
        return End(
            name=balancer.member.name,
            address=balancer.member.address or "",
            site=self._place(balancer.member.site),
            open_ports=ports,
            is_public=balancer.is_public,
        )

    def _place(self, site: str) -> str:
        """What ends in the same networks have in common: their site, or that it is linked."""
        return min(self._linked) if site in self._linked else site

    def names(self, end: End) -> str:
        joined = self.walls.stations.get(four(end.address), ())
        return ", ".join(f"`{each.name}`" for each in self.groups if each.id in joined)

    def first_group(self, end: End) -> str:
        joined = self.walls.stations.get(four(end.address), ())
        return next((each.name for each in self.groups if each.id in joined), "NAME")


def _group(
    balancer: BalancerMember, project: Project, rules: Mapping[GroupId, tuple[Rule, ...]]
) -> SecurityGroup:
    """The group that only this balancer is in, for answers that name it."""
    id = group_of(BalancerId(balancer.member.instance_id))
    return SecurityGroup(
        id=id,
        project_id=project.id,
        name=balancer.member.name,
        created_at=project.created_at,
        rules=rules[id],
    )
