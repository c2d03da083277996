"""The part of the walls table for ACLs, as text for `nft -f`, and what it shares with the rest. Pure.

A map leads from a network to a chain that finds the subnet of the packet's end there, the smallest subnet first. That
goes to the rules of the subnet's ACL, unless the other end is in the same subnet.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Final

from teraflock.drivers.lxd.words import checked_network
from teraflock.network.acl.model import AclAction, AclRule
from teraflock.network.rules import PREFIX as LENGTH
from teraflock.network.security_group.model import PORT_MAX, Direction, Protocol, Rule
from teraflock.network.walls import Borders

_BORDERS: Final = {
    Direction.OUT: ("going_out", "iifname", "saddr", "daddr", "border_out"),
    Direction.IN: ("coming_in", "oifname", "daddr", "saddr", "border_in"),
}
"""For ACLs: the base chain, the interface and the address in the network, the address outside, and the map."""
MASK: Final = str(IPv4Network((0, LENGTH)).netmask)
"""Leads from an address to its network: all networks have the same size."""
PRIORITIES: Final = {Direction.OUT: 1, Direction.IN: 2}
"""After the firewall's own table, which has 0. An accept ends one chain only."""


def guards(borders: Borders) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, str]]]:
    """The chains of all ACLs, and the maps that lead to them. Without an ACL there is no chain that packets pass."""
    chains: dict[str, tuple[str, ...]] = {
        chain: (f"{interface} @bridges ip {address} & {MASK} vmap @{map_name}",)
        for chain, interface, address, _, map_name in (_BORDERS.values() if borders else ())
    }
    maps: dict[str, dict[str, str]] = {names[-1]: {} for names in _BORDERS.values()}
    for network, subnets in _guarded(borders).items():
        for side, names in _BORDERS.items():
            chains |= _border_rules(side, network, subnets, borders)
            maps[names[-1]][first(network)] = f"goto {_border(side, network)}"
    return chains, maps


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
    _, _, own, far, _ = _BORDERS[side]
    chains, lines = {}, []
    parts = [each for each in subnets if each != network]
    for subnet in subnets:
        acl, guard = borders[str(subnet)], _guard(side, subnet)
        if acl is None:
            lines.append(f"ip {own} {subnet} accept")
            continue
        chains[guard] = (*map(_acl_line, (rule for rule in acl if rule.direction == side)), "drop")
        if subnet == network:  # what the other subnets have is not part of it
            lines += [f"ip {far} {each} goto {guard}" for each in parts]
        lines += [f"ip {own} {subnet} ip {far} {subnet} accept", f"ip {own} {subnet} goto {guard}"]
    return {**chains, _border(side, network): tuple(lines)}


def border_maps(table: str) -> Iterator[str]:
    for *_, map_name in _BORDERS.values():
        yield f"add map inet {table} {map_name} {{ type ipv4_addr : verdict; }}"


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


def packets(rule: Rule | AclRule, peer: str) -> str:
    """What a rule matches, formatted from checked values, so that nothing else can get into the text."""
    end = "saddr" if rule.direction == Direction.IN else "daddr"
    words = [f"ip {end} {peer}"]
    if rule.protocol in (Protocol.TCP, Protocol.UDP):
        every = (rule.port_first, rule.port_last) == (0, PORT_MAX)
        single = rule.port_first == rule.port_last
        ports = f"{int(rule.port_first)}" if single else f"{int(rule.port_first)}-{int(rule.port_last)}"
        words.append(f"meta l4proto {rule.protocol}" if every else f"{rule.protocol} dport {ports}")
    elif rule.protocol == Protocol.ICMP:
        words.append("meta l4proto icmp")
    return " ".join(words)


def _acl_line(rule: AclRule) -> str:
    """An ACL knows no connections: every packet is checked by where it goes."""
    verdict = "accept" if rule.action == AclAction.ALLOW else "drop"
    return f"{packets(rule, checked_network(rule.peer))} {verdict}"


def _border(side: Direction, network: IPv4Network) -> str:
    """The chain that finds the subnet of an address."""
    return f"b{side[0]}_{str(network.network_address).replace('.', '_')}"


def _guard(side: Direction, subnet: IPv4Network) -> str:
    """The chain with the rules of a subnet's ACL."""
    return f"a{side[0]}_{str(subnet.network_address).replace('.', '_')}_{subnet.prefixlen}"


def first(network: IPv4Network | str) -> str:
    """All networks have the same size, so their first address is enough."""
    parsed = IPv4Network(network)
    if parsed.prefixlen != LENGTH:
        raise ValueError(f"not a network: {network!r}")
    return str(parsed.network_address)
