"""What the edges ask about a project's network: would a connection pass, and who can reach whom."""

from typing import Final

import msgspec

from teraflock.base.errors import BadInput, NotFound, Refused
from teraflock.network import store
from teraflock.network.acl import store as acls
from teraflock.network.reach import INTERNET, Edge, End, Reached, Stop, anyone, graph, reach
from teraflock.network.security_group import store as groups
from teraflock.network.security_group.model import GroupMember, Protocol, SecurityGroup
from teraflock.network.security_group.rules import is_address, ports_from
from teraflock.network.walls import Walls
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.model import Project

INSTANCES_MAX: Final = 60
"""More cannot be drawn, and the pairs grow with the square."""


class NetworkCheck(msgspec.Struct, frozen=True, kw_only=True):
    reach: Reached
    sentence: str
    hint: str
    groups: tuple[SecurityGroup, ...]


class NetworkService:
    def __init__(self, database: Database) -> None:
        self._database = database

    def check(self, project: Project, source: str, target: str, protocol: str, ports: str) -> NetworkCheck:
        """Decide about a connection between two ends: instances, `internet` or addresses."""
        kind = _protocol(protocol)
        port = _port(ports, kind)
        with self._database.read() as tx:
            picture = _Picture(tx, project)
            one, other = picture.end(tx, source), picture.end(tx, target)
        if not one.site and not other.site:
            raise BadInput(
                "Neither end is an instance",
                hint="Name an instance with `--from` or `--to`: `tera ps` lists them",
            )
        if one == other:
            raise BadInput("Both ends are the same", hint="Name two different ends")
        found = reach(picture.walls, one, other, kind, port)
        sentence, hint = _words(picture, found, one, other, f"{kind} {port}" if port else str(kind))
        return NetworkCheck(reach=found, sentence=sentence, hint=hint, groups=picture.groups)

    def graph(self, project: Project) -> tuple[tuple[str, ...], tuple[Edge, ...]]:
        """The names of all ends, and what can pass between them."""
        with self._database.read() as tx:
            picture = _Picture(tx, project)
            placed = [each.instance_id for each in picture.members.values() if each.address]
            if len(placed) > INSTANCES_MAX:
                raise Refused(
                    f"The project has {len(placed)} instances; a graph shows up to {INSTANCES_MAX}",
                    hint="Ask about single connections: `tera network check --from A --to B --port 22`",
                )
            ends = [picture.end(tx, each) for each in (INTERNET, *placed)]
        return tuple(each.name for each in ends), graph(picture.walls, ends)


class _Picture:
    """The groups and instances of one project at one moment."""

    def __init__(self, tx: Transaction, project: Project) -> None:
        self.groups = groups.groups(tx, project.id, project.created_at)
        self.members: dict[str, GroupMember] = {each.name: each for each in groups.members(tx, project.id)}
        self.walls = Walls(
            groups={each.id: each.rules for each in self.groups},
            stations={each.address: each.groups for each in self.members.values() if each.address},
        )
        attached = [each for each in acls.acls(tx, project.id) if each.attached]
        self._border = attached[0].rules if attached else None
        self._by_id = {each.instance_id: each for each in self.members.values()}

    def end(self, tx: Transaction, ref: str) -> End:
        """Of an instance that is called `internet`, only the id means the instance."""
        member = self.members.get(ref) or self._by_id.get(ref)
        if ref == INTERNET:
            rules = [rule for each in self.groups for rule in each.rules]
            return End(name=INTERNET, address=anyone([*rules, *(self._border or ())]))
        if member is None and is_address(ref):
            member = next((each for each in self.members.values() if each.address == ref), None)
            if member is None:
                return End(name=ref, address=ref)
        if member is None:
            hint = "Name an instance (`tera ps` lists them), `internet`, or an IPv4 address"
            raise NotFound(f"There is no instance `{ref[:80]}`", hint=hint)
        if member.address is None:
            raise Refused(
                f"`{member.name}` has no address in the project's network",
                hint="Security groups work on own hosts. Use the firewall of the cloud for rented machines",
            )
        ports, allowed = store.surroundings(tx, member.instance_id)
        return End(
            name=member.name,
            address=member.address,
            site=member.site,
            open_ports=ports,
            is_public=store.is_public(tx, member.instance_id),
            allowed_out=allowed,
            border=self._border,
        )

    def names(self, end: End) -> str:
        joined = self.walls.stations.get(end.address, ())
        return ", ".join(f"`{each.name}`" for each in self.groups if each.id in joined)

    def first_group(self, end: End) -> str:
        joined = self.walls.stations.get(end.address, ())
        return next((each.name for each in self.groups if each.id in joined), "NAME")


def _protocol(text: str) -> Protocol:
    if text not in ("tcp", "udp", "icmp"):
        raise BadInput(f"Unknown protocol `{text[:40]}`", hint="Use one of `tcp`, `udp`, `icmp`")
    return Protocol(text)


def _port(text: str, protocol: Protocol) -> int:
    if protocol == Protocol.ICMP and not text:
        return 0
    if not text:
        raise BadInput("A connection has a port", hint="Add `--port 22`, or `--protocol icmp`")
    first, last = ports_from(text, protocol)
    if first != last:
        raise BadInput("A connection has one port, not a range", hint=f"Use `--port {first}`")
    return first


def _words(picture: _Picture, found: Reached, one: End, other: End, what: str) -> tuple[str, str]:
    """The answer in a sentence, and what to do about it. `what`: `tcp 22`."""
    if found.stop is None:
        return f"{what} from `{one.name}` to `{other.name}` passes", ""
    if found.stop in (Stop.OUT, Stop.IN):
        return _stopped_by_groups(picture, found, one, other, what)
    if found.stop in (Stop.ACL, Stop.ACL_REPLY):
        what = f"{what}" if found.stop == Stop.ACL else f"replies to {what}"
        sentence = f"The ACL of the network drops {what} between {_end_text(one)} and {_end_text(other)}"
        return (
            sentence,
            "`tera acl list` shows which ACL is attached. It has no memory: replies need a rule, too",
        )
    if found.stop == Stop.UNPUBLISHED:
        ports = ", ".join(map(str, sorted(other.open_ports))) or "none"
        return (
            f"The host of `{other.name}` opens no port that leads to its port {what}",
            f"Its open TCP ports: {ports}. Publish more with `tera publish {other.name} PORT`",
        )
    if found.stop == Stop.CLOSED:
        sentence = f"Hosts do not let instances into the network of {other.name}"
        return sentence, "The operator can open it: `tera host allow-out`"
    sentence = f"{_end_text(one)} and {_end_text(other)} have no common network"
    return sentence, "Only instances of one project at one site have one"


def _stopped_by_groups(picture: _Picture, found: Reached, one: End, other: End, what: str) -> tuple[str, str]:
    if found.stop == Stop.OUT:
        return (
            f"No rule of {picture.names(one)} lets {what} out of `{one.name}` to {_end_text(other)}",
            f"Allow it with `{_allow(picture, one, '--out', what, '--to', other)}`",
        )
    only = f". Only {', '.join(found.only_from)} can reach it" if found.only_from else ""
    return (
        f"No rule of {picture.names(other)} lets {what} into `{other.name}` from {_end_text(one)}{only}",
        f"Allow it with `{_allow(picture, other, '--in', what, '--from', one)}`",
    )


def _end_text(end: End) -> str:
    return f"`{end.name}`" if end.site else "the internet" if end.is_internet else end.name


def _allow(picture: _Picture, own: End, side: str, what: str, way: str, peer: End) -> str:
    protocol, _, port = what.partition(" ")
    ports = f" --port {port}" if port else ""
    near = "0.0.0.0/0" if peer.is_internet else peer.address
    return f"tera sg allow {picture.first_group(own)} {side} --protocol {protocol}{ports} {way} {near}"
