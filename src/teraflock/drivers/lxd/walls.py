"""Security groups as a table for `nft -f`. Pure.

Two chains see every forwarded packet, after the firewall's own table: `leaving` checks what guests send, `entering`
what they receive. A map leads from an address to the chain of its groups:

    map to { 10.128.0.16 : goto ci_… }          one element for each guest
    chain ci_… { jump gi_web; jump gi_db; drop }   one chain for each combination of groups
    chain gi_web { ip saddr 10.0.0.0/8 tcp dport 80 accept; ip saddr @m_db accept }
    set m_db { 10.128.0.17, 10.128.0.18 }          the members of groups that rules name
    map published { 30001 : 10.128.0.16 . 8080 }   ports of the host that lead to guests
    map floating_in { 203.0.113.5 : 10.128.0.16 }  public addresses, and `floating_out` for the way back

What leads by an address exists for IPv6, too, as `to6` or `m6_db`. The chains of groups serve both families.
An address without an element is dropped. A connection must start with a SYN: otherwise the rest of one that was cut
could be taken for a new one in the other direction.
Between two networks, only pairs of networks in `paths` pass: each with itself, and those that are peered.
An ICMP error is accepted from a guest only if the connection is its own: the kernel takes the word of everybody.
If there are ACLs, they have two more chains, which see what crosses the border of a subnet and know no connections. A
map leads from a network to a chain that finds the subnet, the smallest first, and goes to the rules of its ACL.
A full load replaces the table and a change touches only what differs; both are one transaction. An empty chain whose
name is the digest of the content marks what is loaded.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from ipaddress import IPv4Address
from typing import Final

import msgspec

from teraflock.drivers.lxd.borders import (
    PRIORITIES,
    base_chain,
    border_maps,
    guards,
    hook_of,
    packets,
)
from teraflock.drivers.lxd.families import FAMILIES, NEIGHBOURS, AddressFamily
from teraflock.drivers.lxd.words import quoted
from teraflock.network.security_group.model import PREFIX, Direction, GroupId, Rule
from teraflock.network.walls import Published, Walls, network_of

_ID: Final = re.compile(rf"{PREFIX}([0-9a-z]{{1,40}})")
_SIDES: Final = {
    Direction.OUT: ("leaving", "iifname", "oifname", "saddr", "from"),
    Direction.IN: ("entering", "oifname", "iifname", "daddr", "to"),
}
"""The base chain, the interface of the guest and the other one, the guest's address, and the map."""
PATHS: Final = "paths"
SELVES: Final = "selves"
"""Every address with itself: finds out whether two addresses are the same one, which `nft` cannot compare."""
ERRORS: Final = "errors"
PUBLISHED: Final = "published"
FLOATING_IN, FLOATING_OUT = "floating_in", "floating_out"
_FLOATING: Final = (
    (
        f"{FLOATING_IN}_prerouting",
        "type nat hook prerouting priority -105",
        f"dnat ip to ip daddr map @{FLOATING_IN}",
    ),
    (
        f"{FLOATING_IN}_output",
        "type nat hook output priority -105",
        f"dnat ip to ip daddr map @{FLOATING_IN}",
    ),
    (
        f"{FLOATING_OUT}_postrouting",
        "type nat hook postrouting priority 95",
        f"oifname != @bridges snat ip to ip saddr map @{FLOATING_OUT}",
    ),
)
"""Before the chains for open ports, and before the engine hides guests behind the address of the host."""


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the table that depend on the walls, by name."""

    chains: Mapping[str, tuple[str, ...]] = {}
    sets: Mapping[str, frozenset[str]] = {}
    maps: Mapping[str, Mapping[str, str]] = {}
    """By map: where each address leads, and each published port."""
    mark: str = ""
    """Digest of the rest."""


def compiled(walls: Walls) -> Compiled:
    combinations = sorted(set(walls.stations.values()))
    used = sorted({group for groups in combinations for group in groups})
    rules = {group: walls.groups.get(group, ()) for group in used}
    named = {GroupId(rule.peer) for each in rules.values() for rule in each if rule.names_group}
    chains = {_chain(side, group): _lines(rules[group], side) for side in Direction for group in used}
    for side in Direction:
        for groups in combinations:
            jumps = (f"jump {_chain(side, group)}" for group in groups)
            chains[_combination(side, groups)] = (*jumps, "drop")
    maps = {
        _SIDES[side][-1] + family.suffix: _leads(walls, side, family)
        for side in Direction
        for family in FAMILIES
    }
    borders, leads = guards(walls.borders)
    chains |= borders
    maps |= leads
    maps[FLOATING_IN] = {_address(each.public): _address(each.private) for each in walls.floating}
    maps[FLOATING_OUT] = {_address(each.private): _address(each.public) for each in walls.floating}
    maps[PUBLISHED] = {str(int(each.port)): _target(each) for each in walls.published}
    sets: dict[str, frozenset[str]] = {}
    for family in FAMILIES:
        sets |= _members(walls, named, family)
        sets[PATHS + family.suffix] = _paths(walls, family)
        own = map(family.address, walls.stations)
        sets[SELVES + family.suffix] = frozenset(f"{each} . {each}" for each in own)
    content = (chains, {name: sorted(each) for name, each in sets.items()}, maps)
    digest = sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:24]
    return Compiled(chains=chains, sets=sets, maps=maps, mark=f"mark_{digest}")


def _paths(walls: Walls, family: AddressFamily) -> frozenset[str]:
    """The pairs of networks that packets may cross: each network with itself, and peers in both directions."""
    own = set(map(family.first, {network_of(address) for address in walls.stations}))
    peers = [(family.first(one), family.first(other)) for one, other in walls.peers]
    both = [*((each, each) for each in own), *peers, *((other, one) for one, other in peers)]
    return frozenset(f"{one} . {other}" for one, other in both)


def _lines(rules: Iterable[Rule], side: Direction) -> tuple[str, ...]:
    return tuple(line for rule in rules if rule.direction == side for line in _of_rule(rule))


def _leads(walls: Walls, side: Direction, family: AddressFamily) -> dict[str, str]:
    return {
        family.address(address): f"goto {_combination(side, groups)}"
        for address, groups in walls.stations.items()
    }


def _members(walls: Walls, named: set[GroupId], family: AddressFamily) -> dict[str, frozenset[str]]:
    members: dict[GroupId, set[str]] = {group: set() for group in named}
    for address, groups in walls.stations.items():
        for group in named.intersection(groups):
            members[group].add(family.address(address))
    return {f"m{family.suffix}_{_word(group)}": frozenset(each) for group, each in members.items()}


def full(table: str, wanted: Compiled, bridges: Iterable[str]) -> str:
    """Return the text that replaces the whole table."""
    start = f"table inet {table}\ndelete table inet {table}\n"
    return start + frame(table, bridges) + changes(table, None, wanted)


def frame(table: str, bridges: Iterable[str]) -> str:
    """Return the parts that do not depend on the walls. What was loaded before is kept."""
    names = ", ".join(map(quoted, bridges))
    lines = [
        f"add table inet {table}",
        f"add set inet {table} bridges {{ type ifname; }}",
        f"flush set inet {table} bridges",
        *([f"add element inet {table} bridges {{ {names} }}"] if names else []),
        *(f"add set inet {table} {name} {{ type {_type(name)}; }}" for name in _pair_sets()),
        f"add map inet {table} {PUBLISHED} {{ type inet_service : ipv4_addr . inet_service; }}",
    ]
    for hook, priority in (("prerouting", "dstnat"), ("output", "-100")):
        chain = f"{PUBLISHED}_{hook}"
        dnat = f"fib daddr type local dnat ip to tcp dport map @{PUBLISHED}"
        lines += base_chain(table, chain, f"type nat hook {hook} priority {priority}", dnat)
    for name in (FLOATING_IN, FLOATING_OUT):
        lines.append(f"add map inet {table} {name} {{ type ipv4_addr : ipv4_addr; }}")
    for chain, hook, rule in _FLOATING:
        lines += base_chain(table, chain, hook, rule)
    lines += [f"add chain inet {table} {ERRORS}", f"flush chain inet {table} {ERRORS}"]
    lines += [f"add rule inet {table} {ERRORS} {rule}" for rule in _error_rules()]
    for side, (chain, *_, map_name) in _SIDES.items():
        for family in FAMILIES:
            lines.append(
                f"add map inet {table} {map_name}{family.suffix} {{ type {family.kind} : verdict; }}"
            )
        hook = f"type filter hook forward priority {PRIORITIES[side]}"
        lines += base_chain(table, chain, hook, *_side_rules(side))
    return "\n".join((*lines, *border_maps(table))) + "\n"


def _pair_sets() -> Iterator[str]:
    for name in (PATHS, SELVES):
        yield from (name + family.suffix for family in FAMILIES)


def _error_rules() -> Iterator[str]:
    """Who may report an error about a connection: a guest that is one of its ends."""
    for each in FAMILIES:
        for way in ("original", "reply"):
            pair = f"{each.word} saddr . ct {way} {each.word} saddr"
            yield f"{pair} @{SELVES}{each.suffix} accept"
    yield "drop"


def _side_rules(side: Direction) -> Iterator[str]:
    """Almost all packets are of open connections, so these come first. IPv6 does not leave our networks."""
    _, interface, other, address, map_name = _SIDES[side]
    yield "ct state established accept"
    yield f"{interface} != @bridges accept"
    yield "ct state invalid drop"
    yield f"meta nfproto ipv6 {other} != @bridges drop"
    yield f"iifname @bridges ct state related goto {ERRORS}"
    yield "ct state related accept"
    yield f"{NEIGHBOURS} accept"
    yield "tcp flags & (fin | syn | rst | ack) != syn drop"
    for each in FAMILIES:
        ends = f"{each.word} saddr & {each.mask} . {each.word} daddr & {each.mask}"
        yield f"iifname @bridges oifname @bridges {ends} != @{PATHS}{each.suffix} drop"
    for each in FAMILIES:
        yield f"{each.word} {address} vmap @{map_name}{each.suffix}"
    yield "drop"


def changes(table: str, loaded: Compiled | None, after: Compiled) -> str:
    """Return the text that turns the loaded table into that of `after`; None: only the frame is there.

    What is named comes before what names it.
    """
    if loaded is not None and loaded.mark == after.mark:
        return ""
    before = loaded or Compiled()
    named = (*_gone(after.chains, before.chains), after.mark)
    new = [f"add chain inet {table} {name}{hook_of(name)}" for name in named]
    new += [
        f"add set inet {table} {name} {{ type {_type(name)}; }}" for name in _gone(after.sets, before.sets)
    ]
    old = [f"flush chain inet {table} {name}" for name in _gone(before.chains, after.chains)]
    old += [f"delete chain inet {table} {name}" for name in _gone(before.chains, after.chains)]
    old += [f"delete set inet {table} {name}" for name in _gone(before.sets, after.sets)]
    if loaded is not None:
        old.append(f"delete chain inet {table} {loaded.mark}")
    changed = (
        *_elements(table, before, after),
        *_rules(table, before, after),
        *_verdicts(table, before, after),
    )
    return "\n".join((*new, *changed, *old)) + "\n"


def _elements(table: str, before: Compiled, after: Compiled) -> Iterator[str]:
    for name, members in after.sets.items():
        there = before.sets.get(name, frozenset())
        yield from _element("delete", table, name, sorted(there - members))
        yield from _element("add", table, name, sorted(members - there))


def _rules(table: str, before: Compiled, after: Compiled) -> Iterator[str]:
    for name, lines in after.chains.items():
        there = before.chains.get(name)
        if there == lines:
            continue
        if there:
            yield f"flush chain inet {table} {name}"
        yield from (f"add rule inet {table} {name} {line}" for line in lines)


def _verdicts(table: str, before: Compiled, after: Compiled) -> Iterator[str]:
    for name, wanted in after.maps.items():
        there = before.maps.get(name, {})
        gone = [each for each, value in there.items() if wanted.get(each) != value]
        new = [f"{each} : {value}" for each, value in wanted.items() if there.get(each) != value]
        yield from _element("delete", table, name, gone)
        yield from _element("add", table, name, new)


def _element(verb: str, table: str, name: str, elements: list[str]) -> Iterator[str]:
    if elements:
        yield f"{verb} element inet {table} {name} {{ {', '.join(elements)} }}"


def _gone(before: Iterable[str], after: Mapping[str, object]) -> list[str]:
    return [name for name in before if name not in after]


def remove(table: str) -> str:
    """Remove the table if it exists."""
    return f"table inet {table}\ndelete table inet {table}\n"


@lru_cache(maxsize=1 << 16)
def _of_rule(rule: Rule) -> tuple[str, ...]:
    members = _word(GroupId(rule.peer)) if rule.names_group else ""
    return tuple(f"{each} accept".strip() for each in packets(rule, members))


@lru_cache(maxsize=1 << 16)
def _address(text: str) -> str:
    return str(IPv4Address(text))


def _type(name: str) -> str:
    """The type of a set's elements."""
    for each in FAMILIES:
        if name in (PATHS + each.suffix, SELVES + each.suffix):
            return f"{each.kind} . {each.kind}"
        if name.startswith(f"m{each.suffix}_"):
            return each.kind
    raise ValueError(f"unknown set: {name!r}")


def _target(published: Published) -> str:
    return f"{_address(published.address)} . {int(published.guest_port)}"


@lru_cache(maxsize=1 << 16)
def _word(group: GroupId) -> str:
    found = _ID.fullmatch(group)
    if not found:
        raise ValueError(f"invalid id of a security group: {group!r}")
    return found[1]


def _chain(side: Direction, group: GroupId) -> str:
    return f"g{side[0]}_{_word(group)}"


def _combination(side: Direction, groups: tuple[GroupId, ...]) -> str:
    return f"c{side[0]}_{sha256(' '.join(groups).encode()).hexdigest()[:16]}"
