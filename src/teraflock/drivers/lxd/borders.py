"""The part of the walls table for ACLs, as text for `nft -f`, and what it shares with the rest. Pure.

A map leads from a network to a chain that finds the subnet of the packet's end there, the smallest subnet first. That
goes to the rules of the subnet's ACL, unless the other end is in the same subnet. Questions about neighbours cross
borders freely, as ARP does.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Final

from teraflock.base.limits import PORT_MAX
from teraflock.drivers.lxd.families import FAMILIES, NEIGHBOURS, AddressFamily
from teraflock.network.acl.model import AclAction, AclRule
from teraflock.network.rules import PREFIX as LENGTH
from teraflock.network.security_group.model import Direction, Protocol, Rule
from teraflock.network.security_group.rules import EVERYWHERE
from teraflock.network.walls import Borders

_BORDERS: Final = {
    Direction.OUT: ("going_out", "iifname", "saddr", "daddr", "border_out"),
    Direction.IN: ("coming_in", "oifname", "daddr", "saddr", "border_in"),
}
"""For ACLs: the base chain, the interface and the address in the network, the address outside, and the map."""
PRIORITIES: Final = {Direction.OUT: 1, Direction.IN: 2}
"""After the firewall's own table, which has 0. An accept ends one chain only."""


def guards(borders: Borders) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, str]]]:
    """The chains of all ACLs, and the maps that lead to them. Without an ACL there is no chain that packets pass."""
    chains: dict[str, tuple[str, ...]] = {
        chain: (
            f"{NEIGHBOURS} accept",
            *(
                f"{interface} @bridges {each.word} {address} & {each.mask} vmap @{map_name}{each.suffix}"
                for each in FAMILIES
            ),
        )
        for chain, interface, address, _, map_name in (_BORDERS.values() if borders else ())
    }
    maps: dict[str, dict[str, str]] = {name: {} for name, _ in _maps()}
    for network, subnets in _guarded(borders).items():
        for side, names in _BORDERS.items():
            chains |= _border_rules(side, network, subnets, borders)
            for family in FAMILIES:
                lead = f"goto {_border(side, network)}"
                maps[names[-1] + family.suffix][family.first(str(network))] = lead
    return chains, maps


def _maps() -> Iterator[tuple[str, AddressFamily]]:
    for *_, name in _BORDERS.values():
        yield from ((name + family.suffix, family) for family in FAMILIES)


def _guarded(borders: Borders) -> dict[IPv4Network, list[IPv4Network]]:
    """The subnets of each network that an ACL guards, the smallest first. The last one is the network itself."""
    found: dict[IPv4Network, list[IPv4Network]] = {}
    for each in sorted(map(IPv4Network, borders), key=lambda each: (-each.prefixlen, each)):
        found.setdefault(each.supernet(new_prefix=LENGTH), []).append(each)
    return found


def _border_rules(
    side: Direction, network: IPv4Network, subnets: list[IPv4Network], borders: Borders
) -> dict[str, tuple[str, ...]]:
    """The chain that finds the subnet of a packet's end in this network, and the chains of their ACLs."""
    chains: dict[str, tuple[str, ...]] = {}
    lines: list[str] = []
    for subnet in subnets:
        acl, guard = borders[str(subnet)], _guard(side, subnet)
        if acl is not None:
            rules = (line for rule in acl if rule.direction == side for line in _acl_lines(rule))
            chains[guard] = (*rules, "drop")
        # What the other subnets have is not part of the network's own.
        parts = [each for each in subnets if each != network] if subnet == network else []
        for family in FAMILIES:
            lines += _ways(side, family, subnet, parts, guard if acl is not None else "")
    return {**chains, _border(side, network): tuple(lines)}


def _ways(
    side: Direction, family: AddressFamily, subnet: IPv4Network, parts: list[IPv4Network], guard: str
) -> Iterator[str]:
    """What leads packets of a subnet's end to its ACL, the chain `guard`. Empty: the subnet has none."""
    _, _, own, far, _ = _BORDERS[side]
    inside, word = family.network(str(subnet)), family.word
    if not guard:
        yield f"{word} {own} {inside} accept"
        return
    for each in parts:
        yield f"{word} {far} {family.network(str(each))} goto {guard}"
    yield f"{word} {own} {inside} {word} {far} {inside} accept"
    yield f"{word} {own} {inside} goto {guard}"


def border_maps(table: str) -> Iterator[str]:
    for name, family in _maps():
        yield f"add map inet {table} {name} {{ type {family.kind} : verdict; }}"


def hook_of(chain: str) -> str:
    """What a chain of an ACL begins with, if the kernel itself leads there."""
    for side, (name, *_) in _BORDERS.items():
        if chain == name:
            return f" {{ type filter hook forward priority {PRIORITIES[side] + 2}; policy accept; }}"
    return ""


def base_chain(table: str, name: str, hook: str, *rules: str) -> Iterator[str]:
    yield f"add chain inet {table} {name} {{ {hook}; policy accept; }}"
    yield f"flush chain inet {table} {name}"
    yield from (f"add rule inet {table} {name} {rule}" for rule in rules)


def packets(rule: Rule | AclRule, members: str = "") -> Iterator[str]:
    """What a rule matches, formatted from checked values, so that nothing else can get into the text. `members`: the
    set of the group that it names, without the prefix of a family."""
    end = "saddr" if rule.direction == Direction.IN else "daddr"
    if rule.peer == EVERYWHERE and rule.protocol != Protocol.ICMP:
        yield _kind(rule, "")
        return
    for family in FAMILIES:
        peer = f"@m{family.suffix}_{members}" if members else family.network(rule.peer)
        if peer:
            yield f"{family.word} {end} {peer} {_kind(rule, family.icmp)}".strip()


def _kind(rule: Rule | AclRule, icmp: str) -> str:
    if rule.protocol in (Protocol.TCP, Protocol.UDP):
        every = (rule.port_first, rule.port_last) == (0, PORT_MAX)
        single = rule.port_first == rule.port_last
        ports = f"{int(rule.port_first)}" if single else f"{int(rule.port_first)}-{int(rule.port_last)}"
        return f"meta l4proto {rule.protocol}" if every else f"{rule.protocol} dport {ports}"
    return f"meta l4proto {icmp}" if rule.protocol == Protocol.ICMP else ""


def _acl_lines(rule: AclRule) -> Iterator[str]:
    """An ACL knows no connections: every packet is checked by where it goes."""
    verdict = "accept" if rule.action == AclAction.ALLOW else "drop"
    return (f"{each} {verdict}".strip() for each in packets(rule))


def _border(side: Direction, network: IPv4Network) -> str:
    """The chain that finds the subnet of an address."""
    return f"b{side[0]}_{str(network.network_address).replace('.', '_')}"


def _guard(side: Direction, subnet: IPv4Network) -> str:
    """The chain with the rules of a subnet's ACL."""
    return f"a{side[0]}_{str(subnet.network_address).replace('.', '_')}_{subnet.prefixlen}"
