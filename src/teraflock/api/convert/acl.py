"""Converters of network ACLs."""

from teraflock.base.filling import filled
from teraflock.network.acl.model import Acl, AclRule
from teraflock.network.acl.rules import rule_from
from teraflock.network.security_group.rules import span_text
from teraflock.wire.acl import AclAnswer, AclRuleAnswer, AclRuleRequest


def acl_answer(acl: Acl) -> AclAnswer:
    return filled(AclAnswer, acl, attached=bool(acl.subnets), rules=tuple(map(_rule_answer, acl.rules)))


def acl_rule_from(body: AclRuleRequest) -> AclRule:
    return rule_from(body.direction, body.number, body.action, body.protocol, body.ports, body.peer)


def _rule_answer(rule: AclRule) -> AclRuleAnswer:
    return filled(AclRuleAnswer, rule, ports=span_text(rule.port_first, rule.port_last))
