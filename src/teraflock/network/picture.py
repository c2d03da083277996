"""What a project's networks look like at one moment: its instances, groups, ACLs, and what it is peered with."""

from teraflock.base.errors import NotFound, Refused
from teraflock.network import store
from teraflock.network.acl import store as acls
from teraflock.network.peering import store as peerings
from teraflock.network.reach import INTERNET, End, anyone
from teraflock.network.rules import number_of, subnet
from teraflock.network.security_group import store as groups
from teraflock.network.security_group.model import GroupId, GroupMember, Rule
from teraflock.network.security_group.rules import is_address
from teraflock.network.walls import Borders, Walls, pair
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Project, ProjectId


class Picture:
    def __init__(self, tx: Transaction, project: Project) -> None:
        self.groups = groups.groups(tx, project.id, project.created_at)
        self.members: dict[str, GroupMember] = {each.name: each for each in groups.members(tx, project.id)}
        self._by_id = {each.instance_id: each for each in self.members.values()}
        self._by_address = {each: member for member in self.members.values() for each in member.addresses}
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
        members = groups.members(tx, owner)
        found = {a: each for each in members for a in each.addresses if number_of(a) == number}
        self.foreign |= found
        used = {group for each in found.values() for group in each.groups}
        return groups.rules_in_all_projects(tx, sorted(used)), acls.borders_in_all_projects(tx, owner)

    def ends(self, tx: Transaction, ref: str) -> tuple[End, ...]:
        """The interfaces of an instance, or one end. Of an instance that is called `internet`, only the id means it."""
        if ref == INTERNET:
            rules = [rule for each in self.walls.groups.values() for rule in each]
            guards = [rule for acl in self.walls.borders.values() for rule in acl or ()]
            return (End(name=INTERNET, address=anyone([*rules, *guards])),)
        member = self.members.get(ref) or self._by_id.get(ref)
        if member is None and is_address(ref):
            return (self._end_at(tx, ref),)
        if member is None:
            hint = "Name an instance (`tera ps` lists them), `internet`, or an IPv4 address"
            raise NotFound(f"There is no instance `{ref[:80]}`", hint=hint)
        if member.address is None:
            raise Refused(
                f"`{member.name}` has no address in a network of the project",
                hint="Security groups work on own hosts. Use the firewall of the cloud for rented machines",
            )
        return self._interfaces(tx, member)

    def _end_at(self, tx: Transaction, address: str) -> End:
        if member := self._by_address.get(address):
            return next(each for each in self._interfaces(tx, member) if each.address == address)
        if far := self.foreign.get(address):
            inner = address != far.address
            return End(name=address, address=address, site=far.site, is_inner=inner, is_foreign=True)
        return End(name=address, address=address)

    def _interfaces(self, tx: Transaction, member: GroupMember) -> tuple[End, ...]:
        ports, allowed = store.surroundings(tx, member.instance_id)
        is_public = store.is_public(tx, member.instance_id)
        return tuple(
            End(
                name=member.name,
                address=address,
                site=member.site,
                open_ports=ports,
                is_public=is_public and address == member.address,
                allowed_out=allowed,
                is_inner=address != member.address,
            )
            for address in member.addresses
        )

    def names(self, end: End) -> str:
        joined = self.walls.stations.get(end.address, ())
        return ", ".join(f"`{each.name}`" for each in self.groups if each.id in joined)

    def first_group(self, end: End) -> str:
        joined = self.walls.stations.get(end.address, ())
        return next((each.name for each in self.groups if each.id in joined), "NAME")
