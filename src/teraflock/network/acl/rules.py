"""What an ACL says about a packet, and from words to rules. Pure."""

from collections.abc import Iterable
from typing import Final

from teraflock.base.errors import BadInput, one_of
from teraflock.network.acl.model import AclAction, AclRule
from teraflock.network.ipv6 import holds
from teraflock.network.security_group.model import Direction, Protocol
from teraflock.network.security_group.rules import network_from, ports_from

NUMBER_MAX: Final = 32_766
ACLS_MAX: Final = 20
RULES_MAX: Final = 100
"""Limits per project and per ACL."""


def rule_from(direction: str, number: int, action: str, protocol: str, ports: str, peer: str) -> AclRule:
    """`ports` is `80`, `80-90` or empty; `peer` is a network or an address."""
    one_of("direction", direction, tuple(Direction))
    one_of("protocol", protocol, tuple(Protocol))
    if not 1 <= number <= NUMBER_MAX:
        raise BadInput(f"`{number}` cannot be the number of a rule", hint=f"Use 1 to {NUMBER_MAX}")
    if peer.startswith("sg:"):
        raise BadInput(
            "A rule of an ACL cannot name a security group", hint="Write a network, such as `10.0.0.0/8`"
        )
    first, last = ports_from(ports, Protocol(protocol))
    return AclRule(
        direction=Direction(direction),
        number=number,
        action=AclAction(action),
        protocol=Protocol(protocol),
        port_first=first,
        port_last=last,
        peer=network_from(peer, also=" or an address"),
    )


def deciding(
    rules: Iterable[AclRule], direction: Direction, peer: str, protocol: Protocol, port: int
) -> AclRule | None:
    """The rule that decides about a packet; None: none matches, and the packet is dropped."""
    found = (each for each in rules if each.direction == direction and _matches(each, peer, protocol, port))
    return min(found, key=lambda each: each.number, default=None)


def passes(rules: Iterable[AclRule], direction: Direction, peer: str, protocol: Protocol, port: int) -> bool:
    rule = deciding(rules, direction, peer, protocol, port)
    return rule is not None and rule.action == AclAction.ALLOW


def _matches(rule: AclRule, peer: str, protocol: Protocol, port: int) -> bool:
    if rule.protocol not in (Protocol.ANY, protocol):
        return False
    if rule.protocol in (Protocol.TCP, Protocol.UDP) and not rule.port_first <= port <= rule.port_last:
        return False
    return holds(rule.peer, peer)
