"""What the edges ask about a project's network: would a connection pass, and who can reach whom."""

from collections.abc import Callable, Collection
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, Refused
from teraflock.network.balancer.walls import NAME_PREFIX
from teraflock.network.ipv6 import is_six
from teraflock.network.openings import Edge, graph
from teraflock.network.picture import Picture
from teraflock.network.reach import INTERNET, End, Reached, Stop, asked, reach, with_ipv6
from teraflock.network.security_group.model import Protocol, SecurityGroup
from teraflock.network.security_group.rules import EVERYWHERE, is_address, ports_from
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.model import Project

INSTANCES_MAX: Final = 60
"""More cannot be drawn, and the pairs grow with the square."""


class NetworkCheck(msgspec.Struct, frozen=True, kw_only=True):
    reach: Reached
    sentence: str
    hint: str
    groups: tuple[SecurityGroup, ...]


class NetworkChecks:
    def __init__(
        self, database: Database, linked: Callable[[Transaction], Collection[str]] = lambda tx: ()
    ) -> None:
        """`linked` sites share the networks of projects."""
        self._database = database
        self._linked = linked

    def check(
        self, project: Project, source: str, target: str, protocol: str, ports: str, *, ipv6: bool = False
    ) -> NetworkCheck:
        """Decide about a connection between two ends: instances, balancers as `lb:NAME`, `internet` or addresses.

        `ipv6`: with their IPv6 addresses, as if one of them was given.
        """
        kind = _protocol(protocol)
        port = _port(ports, kind)
        with self._database.read() as tx:
            picture = Picture(tx, project, self._linked(tx))
            one, other = asked(picture.ends(tx, source), picture.ends(tx, target))
        if ipv6 or (is_six(source) and is_address(source)) or (is_six(target) and is_address(target)):
            one, other = _with_ipv6(one), _with_ipv6(other)
        if all(not end.site or end.is_foreign for end in (one, other)):
            raise BadInput(
                "Neither end is an instance of the project",
                hint="Name an instance of the project with `--from` or `--to`: `tera ps` lists them",
            )
        if one.address == other.address or (one.site and one.name == other.name):
            raise BadInput("Both ends are the same", hint="Name two different ends")
        found = reach(picture.walls, one, other, kind, port)
        sentence, hint = _words(picture, found, one, other, f"{kind} {port}" if port else str(kind))
        return NetworkCheck(
            reach=_without_foreign_rules(found, one, other),
            sentence=sentence,
            hint=hint,
            groups=picture.groups,
        )

    def graph(self, project: Project) -> tuple[tuple[str, ...], tuple[Edge, ...]]:
        """The names of all ends, and what can pass between them."""
        with self._database.read() as tx:
            picture = Picture(tx, project, self._linked(tx))
            placed = [each.instance_id for each in picture.members.values() if each.address]
            if len(placed) > INSTANCES_MAX:
                raise Refused(
                    f"The project has {len(placed)} instances and balancers; a graph shows up to {INSTANCES_MAX}",
                    hint="Ask about single connections: `tera network check --from A --to B --port 22`",
                )
            ends = [picture.ends(tx, each) for each in (INTERNET, *placed)]
        return tuple(each[0].name for each in ends), graph(picture.walls, ends)


def _without_foreign_rules(found: Reached, source: End, target: End) -> Reached:
    return msgspec.structs.replace(
        found,
        leaving=None if source.is_foreign else found.leaving,
        entering=None if target.is_foreign else found.entering,
    )


def _with_ipv6(end: End) -> End:
    found = with_ipv6(end)
    if found is None:
        raise BadInput(
            f"{end.name} is an IPv4 address, and the connection uses IPv6",
            hint="Both ends of a connection have addresses of one kind",
        )
    return found


def _protocol(text: str) -> Protocol:
    if text not in ("tcp", "udp", "icmp"):
        raise BadInput(f"Unknown protocol `{text[:40]}`", hint="Use one of `tcp`, `udp`, `icmp`")
    return Protocol(text)


def _port(text: str, protocol: Protocol) -> int:
    if protocol == Protocol.ICMP and not text:
        return 0
    if not text:
        raise BadInput("A TCP or UDP connection needs a port", hint="Add `--port 22`, or `--protocol icmp`")
    first, last = ports_from(text, protocol)
    if first != last:
        raise BadInput("A connection has one port, not a range", hint=f"Use `--port {first}`")
    return first


def _words(picture: Picture, found: Reached, one: End, other: End, what: str) -> tuple[str, str]:
    """The answer in a sentence, and what to do about it. `what`: `tcp 22`."""
    if found.stop is None:
        return f"{what} from `{one.name}` to `{other.name}` passes", ""
    if found.stop in (Stop.OUT, Stop.IN):
        return _stopped_by_groups(picture, found, one, other, what)
    if found.stop in (Stop.ACL, Stop.ACL_REPLY):
        what = f"{what}" if found.stop == Stop.ACL else f"replies to {what}"
        sentence = f"An ACL drops {what} between {_end_text(one)} and {_end_text(other)}"
        return (
            sentence,
            "`tera subnet list` shows which ACL guards each subnet. It has no memory: replies need a rule, too",
        )
    return _stopped_on_the_way(found.stop, one, other, what)


def _stopped_on_the_way(stop: Stop, one: End, other: End, what: str) -> tuple[str, str]:
    if stop == Stop.UNPUBLISHED and other.name.startswith(NAME_PREFIX):
        return (
            f"The host of `{other.name}` opens no port that leads to {what} of the balancer",
            f"It is open at port {', '.join(map(str, other.open_ports))} only"
            if other.open_ports
            else "Create a balancer with `--publish`, or attach a public address: `tera address attach`",
        )
    if stop == Stop.UNPUBLISHED:
        ports = ", ".join(map(str, sorted(other.open_ports))) or "none"
        return (
            f"The host of `{other.name}` opens no port that leads to its port {what}",
            f"Its open TCP ports: {ports}. Publish more with `tera publish {other.name} PORT`",
        )
    if stop == Stop.CLOSED:
        sentence = f"Hosts do not let instances into the network of {other.name}"
        return sentence, "The operator can open it: `tera host allow-out`"
    if stop == Stop.IPV6:
        sentence = f"IPv6 stays inside the networks of projects, and {_outer(one, other)} is outside"
        return sentence, "Use IPv4"
    if stop == Stop.INNER:
        inner = one if one.is_inner else other
        sentence = (
            f"{inner.address} is a further interface of `{inner.name}`, which reaches private networks only"
        )
        return sentence, "The internet is reached through the first interface"
    sentence = f"{_end_text(one)} and {_end_text(other)} have no common network, and theirs are not peered"
    return sentence, "Networks can be peered: `tera network peer --help`"


def _stopped_by_groups(picture: Picture, found: Reached, one: End, other: End, what: str) -> tuple[str, str]:
    foreign = one if found.stop == Stop.OUT else other
    if foreign.is_foreign:
        way = "out of" if found.stop == Stop.OUT else "into"
        sentence = f"The security groups of the peered network do not let {what} {way} {foreign.name}"
        return sentence, "Ask the owner of that network to allow it"
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


def _outer(one: End, other: End) -> str:
    return _end_text(other if one.site else one)


def _end_text(end: End) -> str:
    return (
        f"`{end.name}`"
        if end.site and not end.is_foreign
        else "the internet"
        if end.is_internet
        else end.name
    )


def _allow(picture: Picture, own: End, side: str, what: str, way: str, peer: End) -> str:
    protocol, _, port = what.partition(" ")
    ports = f" --port {port}" if port else ""
    near = EVERYWHERE if peer.is_internet else peer.address
    return f"tera sg allow {picture.first_group(own)} {side} --protocol {protocol}{ports} {way} {near}"
