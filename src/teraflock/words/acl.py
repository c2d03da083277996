"""Network ACLs as text."""

from typing import TYPE_CHECKING

from teraflock.words.table import Field, Fields

if TYPE_CHECKING:
    from teraflock.wire.acl import AclAnswer, AclRuleAnswer


def fields() -> "Fields[AclAnswer]":
    return (
        Field("ACL", lambda each: each.name),
        Field("RULES", lambda each: str(len(each.rules)), right=True),
        Field("GUARDS", lambda each: ", ".join(each.subnets) or "-", flexible=True),
    )


def rule_fields() -> "Fields[AclRuleAnswer]":
    return (
        Field("WAY", lambda each: each.direction),
        Field("NUMBER", lambda each: str(each.number), right=True),
        Field("ACTION", lambda each: each.action),
        Field("PROTOCOL", lambda each: each.protocol),
        Field("PORTS", lambda each: each.ports or "all"),
        Field("FROM OR TO", lambda each: each.peer),
    )
