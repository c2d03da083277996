"""The host's firewall table, as text for `nft -f`. Pure.

Rules for all bridges of this installation:
- nothing is forwarded between two bridges unless their networks are peered, not even an ICMP error about an open
  connection, and traffic from outside reaches them only through an open port;
- what comes from outside with an address of guests (`RANGE`) is forged and never reaches them. Guests of other hosts
  arrive through a link, which is a port of a bridge;
- guests of peered networks see each other's addresses: no address is translated between bridges;
- on the host, a guest reaches only DNS and ping of its gateway, and nobody else reaches the gateway. With IPv6, it
  reaches ping only, and questions about neighbours, which it needs to find the gateway. The host believes no ICMP error
  of a guest: it could be about any connection of the host;
- an open port leads to its guest from outside and from the host itself, on any address of the host;
- with `way_out`, guests reach the internet, but not private, link-local or other special addresses (`CLOSED`)
  or networks the host is attached to, unless the operator allowed them. Without `way_out`, they reach nothing
  beyond their bridge;
- they do so with an address of the host, from this table with `translates`, otherwise from the engine's;
- IPv6 never passes between a bridge and the outside.

The table is replaced in one transaction, so no rule is ever missing. Packets of open connections come first and need
few lookups, because almost all packets are such.
"""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address

import msgspec

from teraflock.drivers.lxd.families import FAMILIES, FOUR, AddressFamily
from teraflock.drivers.lxd.words import checked_network, quoted
from teraflock.network.rules import CLOSED, RANGE
from teraflock.network.walls import is_ours

_FIXED = """
  chain nat_in {
    type nat hook prerouting priority dstnat; policy accept;
    fib daddr type local dnat ip to tcp dport map @opened
  }
  chain nat_own {
    type nat hook output priority -100; policy accept;
    fib daddr type local dnat ip to tcp dport map @opened
  }
  chain nat_between {
    type nat hook postrouting priority srcnat - 1; policy accept;
    oifname @bridges ip saddr @own ip daddr @own snat ip to ip saddr
  }
  chain nat_back {
    type nat hook postrouting priority srcnat; policy accept;
    oifname @bridges ip saddr 127.0.0.0/8 masquerade
  }
  chain to_host {
    type filter hook input priority filter; policy accept;
    iifname != "lo" iifname != @bridges ip daddr @gateways drop
    iifname != "lo" iifname != @bridges ip6 daddr @gateways6 drop
    iifname != @bridges accept
    ct state vmap { established : accept, related : drop, invalid : drop }
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
    iifname . ip6 daddr @gates6 icmpv6 type echo-request accept
    iifname . ip daddr @gates icmp type echo-request accept
    iifname . ip daddr @gates meta l4proto { tcp, udp } th dport 53 accept
    drop
  }
  chain established {
    iifname @bridges oifname @bridges drop
    oifname @bridges ip saddr @own drop
    meta nfproto ipv6 iifname @bridges drop
    meta nfproto ipv6 oifname @bridges drop
    accept
  }
  chain through {
    type filter hook forward priority filter; policy accept;
    ct state established iifname . oifname @joined accept
    ct state established goto established
    iifname != @bridges oifname != @bridges accept
    iifname @bridges oifname @bridges iifname . oifname != @joined drop
    meta nfproto ipv6 iifname . oifname != @joined drop
    iifname != @bridges oifname @bridges ip saddr @own drop
    ct state vmap { related : accept, invalid : drop }
    iifname . oifname @joined accept
    oifname @bridges ct status dnat accept
    oifname @bridges drop
    iifname @bridges goto out
  }
""".strip("\n").splitlines()
_NAT_OUT = """
  chain nat_out {
    type nat hook postrouting priority srcnat; policy accept;
    oifname != @bridges ip saddr @own masquerade
  }
""".strip("\n").splitlines()
_WAY_OUT = ("    ip daddr @allowed accept", "    ip daddr @closed reject with icmp admin-prohibited")


class Forward(msgspec.Struct, frozen=True):
    """A port of the host and the guest that it leads to."""

    host_port: int
    address: str
    guest_port: int


class Bridge(msgspec.Struct, frozen=True):
    name: str
    gateway: str


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    bridges: tuple[Bridge, ...] = ()
    forwards: tuple[Forward, ...] = ()
    way_out: bool = True
    translates: bool = False
    closed: tuple[str, ...] = CLOSED
    """Networks that guests cannot reach through the host."""
    allowed: tuple[str, ...] = ()
    """Exceptions to `closed`."""
    peered: tuple[tuple[str, str], ...] = ()
    """Every two bridges whose networks are peered. The security groups decide the rest, in another table."""


def table(name: str, rules: Rules) -> str:
    """Return the whole table, which replaces the existing one."""
    lines = [
        f"table inet {name}",
        f"delete table inet {name}",
        f"table inet {name} {{",
        *_set("bridges", "ifname", (quoted(bridge.name) for bridge in rules.bridges)),
        *_set("joined", "ifname . ifname", _joined(rules)),
        *(line for family in FAMILIES for line in _gates(family, rules.bridges)),
        *_ranges("own", (str(RANGE),)),
        *_ranges("closed", rules.closed),
        *_ranges("allowed", rules.allowed),
        *_map("opened", "inet_service : ipv4_addr . inet_service", map(_forward_element, rules.forwards)),
        *("  chain out {", *(_WAY_OUT if rules.way_out else ("    drop",)), "  }"),
        *_FIXED,
        *(_NAT_OUT if rules.way_out and rules.translates else ()),
        "}",
    ]
    return "\n".join(lines) + "\n"


def open_ports(name: str, forwards: Sequence[Forward]) -> str:
    return _elements("add", name, "opened", map(_forward_element, forwards))


def close_ports(name: str, ports: Iterable[int]) -> str:
    """Close each port separately: a port that is already closed must not keep the others open."""
    return _elements("delete", name, "opened", map(str, ports))


def remove(name: str) -> str:
    """Remove the table if it exists."""
    return f"table inet {name}\ndelete table inet {name}\n"


def _set(name: str, kind: str, elements: Iterable[str]) -> list[str]:
    return [f"  set {name} {{", f"    type {kind}", *_listed(elements), "  }"]


def _ranges(name: str, networks: Iterable[str]) -> list[str]:
    elements = _listed(map(checked_network, networks))
    return [
        f"  set {name} {{",
        "    type ipv4_addr",
        "    flags interval",
        "    auto-merge",
        *elements,
        "  }",
    ]


def _map(name: str, kind: str, elements: Iterable[str]) -> list[str]:
    return [f"  map {name} {{", f"    type {kind}", *_listed(elements), "  }"]


def _listed(elements: Iterable[str]) -> list[str]:
    joined = ", ".join(elements)
    return [f"    elements = {{ {joined} }}"] if joined else []


def _elements(verb: str, table_name: str, set_name: str, elements: Iterable[str]) -> str:
    joined = ", ".join(elements)
    return f"{verb} element inet {table_name} {set_name} {{ {joined} }}\n" if joined else ""


def _forward_element(forward: Forward) -> str:
    """Format numbers and addresses from parsed values, so that nothing else can get into the text."""
    return f"{int(forward.host_port)} : {IPv4Address(forward.address)} . {int(forward.guest_port)}"


def _joined(rules: Rules) -> Iterator[str]:
    """The pairs of bridges that packets may cross: each with itself, and peered ones in both directions."""
    known = {bridge.name for bridge in rules.bridges}
    peered = [pair for pair in rules.peered if known.issuperset(pair)]
    for one, other in (*((name, name) for name in sorted(known)), *peered, *(pair[::-1] for pair in peered)):
        yield f"{quoted(one)} . {quoted(other)}"


def _gates(family: AddressFamily, bridges: Sequence[Bridge]) -> Iterator[str]:
    """The sets of gateways, with the bridge that each belongs to and without."""
    known = [each for each in bridges if is_ours(each.gateway) or family is FOUR]
    gates = (f"{quoted(each.name)} . {family.address(each.gateway)}" for each in known)
    yield from _set(f"gates{family.suffix}", f"ifname . {family.kind}", gates)
    yield from _set(f"gateways{family.suffix}", family.kind, (family.address(each.gateway) for each in known))
