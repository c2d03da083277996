"""What a security group says: from words to rules and back, and the rules of new groups. Pure."""

import re
from collections.abc import Mapping
from datetime import datetime
from ipaddress import (
    AddressValueError,
    IPv4Network,
    IPv6Network,
    NetmaskValueError,
    ip_address,
    ip_network,
)
from typing import Final

from teraflock.base.errors import BadInput, one_of, unknown_name
from teraflock.base.limits import PORT_MAX
from teraflock.network.security_group.model import (
    PREFIX,
    Direction,
    GroupId,
    Protocol,
    Rule,
    SecurityGroup,
)
from teraflock.tenant.model import ProjectId

DEFAULT: Final = "default"
EVERYWHERE: Final = "0.0.0.0/0"
GROUPS_MAX: Final = 100
RULES_MAX: Final = 100
GROUPS_PER_INSTANCE_MAX: Final = 10
"""Limits per project, per group and per instance. They bound what one tenant can load on a host."""
BY_NAME: Final = "sg:"
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_PORTS: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")

ALLOW_OUT: Final = Rule(direction=Direction.OUT, protocol=Protocol.ANY, peer=EVERYWHERE)
"""Every new group has this rule. Revoke it to limit what its members can reach."""


def default_id(project: ProjectId) -> GroupId:
    return GroupId(PREFIX + project.partition("_")[2])


def default_group(project: ProjectId, created_at: datetime) -> SecurityGroup:
    """The `default` group as it is until someone changes it."""
    id = default_id(project)
    rules = (
        open_port(22),
        open_port(8888),
        Rule(direction=Direction.IN, protocol=Protocol.ANY, peer=id),
        ALLOW_OUT,
    )
    return SecurityGroup(
        id=id, project_id=project, name=DEFAULT, created_at=created_at, rules=tuple(sorted(rules))
    )


def open_port(port: int) -> Rule:
    return Rule(
        direction=Direction.IN, protocol=Protocol.TCP, port_first=port, port_last=port, peer=EVERYWHERE
    )


def rule_from(direction: str, protocol: str, ports: str, peer: str, groups: Mapping[str, GroupId]) -> Rule:
    """`ports` is `80`, `80-90` or empty; `peer` is a network, an address or `sg:NAME`. `groups`: ids by name."""
    one_of("direction", direction, tuple(Direction))
    one_of("protocol", protocol, tuple(Protocol))
    first, last = ports_from(ports, Protocol(protocol))
    return Rule(
        direction=Direction(direction),
        protocol=Protocol(protocol),
        port_first=first,
        port_last=last,
        peer=_peer(peer, groups),
    )


def ports_from(text: str, protocol: Protocol) -> tuple[int, int]:
    if not text:
        return 0, PORT_MAX
    if protocol not in (Protocol.TCP, Protocol.UDP):
        raise BadInput(
            f"Protocol `{protocol}` has no ports", hint="Leave out the port, or use `tcp` or `udp`"
        )
    found = _PORTS.fullmatch(text)
    if not found:
        raise BadInput(f"`{text[:40]}` is not a port", hint="Write one port (`80`) or a range (`80-90`)")
    first, last = int(found[1]), int(found[2] or found[1])
    if not (1 <= first <= PORT_MAX and 1 <= last <= PORT_MAX):
        raise BadInput(f"Port `{text}` is out of range", hint=f"Ports are 1 to {PORT_MAX}")
    if first > last:
        raise BadInput(f"The port range `{text}` is reversed", hint=f"Write `{last}-{first}`")
    return first, last


def _peer(text: str, groups: Mapping[str, GroupId]) -> str:
    if text.startswith(BY_NAME):
        name = text.removeprefix(BY_NAME)
        if not name:
            raise BadInput(
                "`sg:` lacks the name of a group", hint="Write `sg:NAME`; `tera sg list` lists them"
            )
        if name not in groups:
            raise unknown_name("security group", name[:80], groups, see="`tera sg list` lists them")
        return groups[name]
    return network_from(text, also=", an address, or `sg:NAME`")


def network_from(text: str, *, also: str = "") -> str:
    """A network in its usual form, IPv4 or IPv6. A single address is a network of one. `also`: for the hint."""
    try:
        found = IPv6Network(text) if ":" in text and "%" not in text else IPv4Network(text)
    except (AddressValueError, NetmaskValueError):
        hint = f"Write a network (`10.0.0.0/8`){also}"
        raise BadInput(f"`{text[:40]}` is not a network", hint=hint) from None
    except ValueError:  # bits of the host part are set
        raise BadInput(
            f"`{text[:60]}` has host bits set",
            hint=f"Write `{ip_network(text, strict=False)}`"
            + (" for the network, or the address without `/`" if also else ""),
        ) from None
    if isinstance(found, IPv6Network) and found.subnet_of(_MAPPED):
        inner = IPv4Network((int(found.network_address) & 0xFFFFFFFF, found.prefixlen - _MAPPED.prefixlen))
        raise BadInput(f"`{text[:60]}` is an IPv4 network in the form of IPv6", hint=f"Write `{inner}`")
    return str(found)


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def ports_text(rule: Rule) -> str:
    """`80`, `80-90`, or empty for every port."""
    return span_text(rule.port_first, rule.port_last)


def span_text(first: int, last: int) -> str:
    if (first, last) == (0, PORT_MAX):
        return ""
    return str(first) if first == last else f"{first}-{last}"


def peer_text(rule: Rule, names: Mapping[str, str]) -> str:
    """`names`: the names of groups by id."""
    return f"{BY_NAME}{names.get(rule.peer, rule.peer)}" if rule.names_group else rule.peer


def rule_text(rule: Rule, names: Mapping[str, str]) -> str:
    """`in tcp 80-90 from 10.0.0.0/8`."""
    way = "from" if rule.direction == Direction.IN else "to"
    words = (rule.direction, rule.protocol, ports_text(rule), way, peer_text(rule, names))
    return " ".join(word for word in words if word)
