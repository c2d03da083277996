"""Answers about a project's network."""

import msgspec

from teraflock.wire.security_group import RuleAnswer


class DecidingRule(msgspec.Struct, frozen=True, kw_only=True):
    security_group: str
    rule: RuleAnswer


class NetworkCheckAnswer(msgspec.Struct, frozen=True, kw_only=True):
    passes: bool
    sentence: str
    hint: str
    """What would let it pass. Empty if it passes."""
    leaving: DecidingRule | None
    """The rule that lets it out of the source. Null: none does, or the source is not an instance."""
    entering: DecidingRule | None
    """The rule that lets it into the target. Null: none does, or the target is not an instance."""


class ConnectionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    target: str
    allows: str
    """Such as `tcp 22, 80-90; icmp`, or `everything`."""


class NetworkGraphAnswer(msgspec.Struct, frozen=True, kw_only=True):
    ends: tuple[str, ...]
    """`internet`, and the names of the instances."""
    connections: tuple[ConnectionAnswer, ...]
