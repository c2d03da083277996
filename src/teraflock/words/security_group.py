"""Security groups as text."""

from datetime import datetime
from typing import TYPE_CHECKING

from teraflock.base.quantities import count_text
from teraflock.words.table import Field, Fields
from teraflock.words.text import age_text

if TYPE_CHECKING:
    from teraflock.wire.security_group import RuleAnswer, SecurityGroupAnswer


def fields(now: datetime) -> "Fields[SecurityGroupAnswer]":
    return (
        Field("SECURITY GROUP", lambda each: each.name),
        Field("RULES", lambda each: str(len(each.rules)), right=True),
        Field("INSTANCES", lambda each: ", ".join(each.instances), flexible=True, worth=8),
        Field("AGE", lambda each: age_text(each.created_at, now), right=True, worth=5),
    )


def rule_fields() -> "Fields[RuleAnswer]":
    return (
        Field("WAY", lambda each: each.direction),
        Field("PROTOCOL", lambda each: each.protocol),
        Field("PORTS", lambda each: each.ports or "all"),
        Field("FROM OR TO", lambda each: each.peer, flexible=True),
        Field("RULE", lambda each: each.id, worth=5),
    )


def members_text(group: "SecurityGroupAnswer") -> str:
    """`2 instances: web, db`."""
    if not group.instances:
        return "no instances"
    return f"{count_text(len(group.instances), 'instance')}: {', '.join(group.instances)}"


def rule_text(rule: "RuleAnswer") -> str:
    """`in tcp 80 from 0.0.0.0/0`."""
    way = "from" if rule.direction == "in" else "to"
    return " ".join(word for word in (rule.direction, rule.protocol, rule.ports, way, rule.peer) if word)
