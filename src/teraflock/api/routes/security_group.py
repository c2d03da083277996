"""Security groups: what may reach instances, and what they may reach."""

from teraflock.api.call import Call
from teraflock.api.convert.security_group import names_by_group, rule_answer, security_group_answers
from teraflock.api.query import InProject, SecurityGroupListQuery, SecurityGroupQuery
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.security_group import (
    RuleAnswer,
    RuleRequest,
    SecurityGroupAnswer,
    SecurityGroupList,
    SecurityGroupRequest,
)

routes = Routes(
    "security groups", scope=Scope.PROJECT, read=Permission.NETWORK_READ, write=Permission.NETWORK_WRITE
)


@routes.get("/v1/security-groups")
def list_security_groups(call: Call, query: SecurityGroupListQuery) -> SecurityGroupList:
    """List the security groups of a project, with their rules and members."""
    service = call.nouns.security_groups
    every = service.all(call.project)
    found = service.all(call.project, instance=query.instance) if query.instance else every
    members = names_by_group(service.members(call.project)) if query.instances else {}
    counts = service.member_counts(call.project)
    return SecurityGroupList(items=security_group_answers(found, every, members, counts))


@routes.post("/v1/security-groups", status=201, creates=True, errors=("refused",))
def create_security_group(call: Call, query: InProject, body: SecurityGroupRequest) -> SecurityGroupAnswer:
    """Create a security group. It lets nothing in and everything out until you add rules."""
    made = call.nouns.security_groups.create(call.actor, call.project, body.name)
    return _shown(call, made.id)


@routes.get("/v1/security-groups/{group}")
def show_security_group(call: Call, query: SecurityGroupQuery, group: str) -> SecurityGroupAnswer:
    """Show one security group, by id or name."""
    return _shown(call, group, query.instances_max)


@routes.delete("/v1/security-groups/{group}", status=204)
def delete_security_group(call: Call, query: InProject, group: str) -> None:
    """Delete a security group that no instance and no rule of another group uses."""
    call.nouns.security_groups.delete(call.actor, call.project, group)


@routes.post("/v1/security-groups/{group}/rules", errors=("refused", "unknown_name"))
def allow_traffic(call: Call, query: InProject, group: str, body: RuleRequest) -> RuleAnswer:
    """Add a rule to a security group. It applies to new connections within two seconds.

    A group that has the rule is not changed.
    """
    service = call.nouns.security_groups
    _, rule = service.allow(
        call.actor, call.project, group, body.direction, body.protocol, body.ports, body.peer
    )
    return rule_answer(rule, {each.id: each.name for each in service.all(call.project)})


@routes.delete("/v1/security-groups/{group}/rules/{rule}", status=204)
def revoke_traffic(call: Call, query: InProject, group: str, rule: str) -> None:
    """Remove a rule from a security group. Connections that no other rule allows are cut within two seconds."""
    call.nouns.security_groups.revoke(call.actor, call.project, group, rule)


@routes.put("/v1/security-groups/{group}/instances/{instance}")
def attach_security_group(call: Call, query: InProject, group: str, instance: str) -> SecurityGroupAnswer:
    """Put an instance into a security group. Running instances are not restarted."""
    call.nouns.security_groups.attach(call.actor, call.project, group, instance)
    return _shown(call, group)


@routes.delete("/v1/security-groups/{group}/instances/{instance}")
def detach_security_group(call: Call, query: InProject, group: str, instance: str) -> SecurityGroupAnswer:
    """Take an instance out of a security group. An instance keeps at least one."""
    call.nouns.security_groups.detach(call.actor, call.project, group, instance)
    return _shown(call, group)


def _shown(call: Call, ref: str, instances_max: int | None = None) -> SecurityGroupAnswer:
    service = call.nouns.security_groups
    every = service.all(call.project)
    found = service.show(call.project, ref)
    if instances_max is None:
        members = names_by_group(service.members(call.project))
    else:
        members = {found.id: service.names_of_members(found, limit=instances_max)}
    return security_group_answers([found], every, members, service.member_counts(call.project))[0]
