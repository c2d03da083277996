"""Network ACLs: numbered rules for what crosses the border of a subnet."""

from teraflock.api.call import Call
from teraflock.api.query import AclAttachQuery, InProject
from teraflock.api.route import Routes, Scope
from teraflock.base.errors import BadInput
from teraflock.base.filling import filled
from teraflock.network.acl.model import Acl, AclRule
from teraflock.network.acl.rules import rule_from
from teraflock.network.security_group.rules import span_text
from teraflock.tenant.rules import Permission
from teraflock.wire.acl import AclAnswer, AclList, AclRequest, AclRuleAnswer, AclRuleRequest

routes = Routes(
    "network ACLs", scope=Scope.PROJECT, read=Permission.NETWORK_READ, write=Permission.NETWORK_WRITE
)


@routes.get("/v1/acls")
def list_acls(call: Call, query: InProject) -> AclList:
    """List the network ACLs of a project, with their rules."""
    return AclList(items=tuple(map(acl_answer, call.nouns.acls.all(call.project))))


@routes.post("/v1/acls", status=201, creates=True, errors=("refused",))
def create_acl(call: Call, query: InProject, body: AclRequest) -> AclAnswer:
    """Create a network ACL. It has no rules, and guards nothing until you attach it."""
    return acl_answer(call.nouns.acls.create(call.actor, call.project, body.name))


@routes.get("/v1/acls/{acl}")
def show_acl(call: Call, query: InProject, acl: str) -> AclAnswer:
    """Show one network ACL, by id or name."""
    return acl_answer(call.nouns.acls.show(call.project, acl))


@routes.delete("/v1/acls/{acl}", status=204)
def delete_acl(call: Call, query: InProject, acl: str) -> None:
    """Delete a network ACL that is not attached."""
    call.nouns.acls.delete(call.actor, call.project, acl)


@routes.post("/v1/acls/{acl}/rules", errors=("conflict", "refused", "unknown_name"))
def add_acl_rule(call: Call, query: InProject, acl: str, body: AclRuleRequest) -> AclAnswer:
    """Add a rule to a network ACL. Each number is used once in each direction."""
    return acl_answer(call.nouns.acls.add(call.actor, call.project, acl, acl_rule_from(body)))


@routes.delete("/v1/acls/{acl}/rules/{direction}/{number}", errors=("bad_input",))
def remove_acl_rule(call: Call, query: InProject, acl: str, direction: str, number: str) -> AclAnswer:
    """Remove a rule from a network ACL."""
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise BadInput(f"`{number[:40]}` is not the number of a rule", hint="Write a number from 1 to 32766")
    return acl_answer(call.nouns.acls.remove(call.actor, call.project, acl, direction, int(number)))


@routes.put("/v1/acls/{acl}/attached")
def attach_acl(call: Call, query: AclAttachQuery, acl: str) -> AclAnswer:
    """Let an ACL guard a subnet, in place of the one that did."""
    return acl_answer(
        call.nouns.acls.attach(call.actor, call.project, acl, network=query.network, subnet=query.subnet)
    )


@routes.delete("/v1/acls/{acl}/attached")
def detach_acl(call: Call, query: AclAttachQuery, acl: str) -> AclAnswer:
    """Let no ACL guard a subnet."""
    return acl_answer(
        call.nouns.acls.detach(call.actor, call.project, acl, network=query.network, subnet=query.subnet)
    )


def acl_answer(acl: Acl) -> AclAnswer:
    return filled(AclAnswer, acl, attached=bool(acl.subnets), rules=tuple(map(_rule_answer, acl.rules)))


def acl_rule_from(body: AclRuleRequest) -> AclRule:
    return rule_from(body.direction, body.number, body.action, body.protocol, body.ports, body.peer)


def _rule_answer(rule: AclRule) -> AclRuleAnswer:
    return filled(AclRuleAnswer, rule, ports=span_text(rule.port_first, rule.port_last))
