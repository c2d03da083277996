"""Members of an organisation and their roles."""

from teraflock.api.call import Call, cut
from teraflock.api.query import InOrganisation, PageInOrganisation
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.tenant.model import (
    Member,
    Role,
)
from teraflock.tenant.rules import Permission
from teraflock.wire.member import MemberAnswer, MemberPage, MemberRequest, RoleChange

routes = Routes("members", scope=Scope.ANYWHERE, read=Permission.MEMBER_READ, write=Permission.MEMBER_WRITE)


@routes.get("/v1/members")
def list_members(call: Call, query: PageInOrganisation) -> MemberPage:
    """List the members that you may see."""
    found = call.nouns.tenants.members.page(
        call.actor, organisation=call.home(query.organisation), after=query.after, limit=query.limit + 1
    )
    rows, last = cut(found, query.limit)
    return MemberPage(items=tuple(map(member_answer, rows)), next=last.id if last else None)


@routes.post("/v1/members", status=201, creates=True, errors=("ambiguous_name",))
def add_member(call: Call, query: InOrganisation, body: MemberRequest) -> MemberAnswer:
    """Add a member with a role in one project or in all projects."""
    members = call.nouns.tenants.members
    return member_answer(
        members.make(
            call.actor, body.name, Role(body.role), body.project, organisation=call.home(query.organisation)
        )
    )


@routes.delete("/v1/members/{member}", status=204, errors=("ambiguous_name",))
def remove_member(call: Call, member: str) -> None:
    """Remove a member from the organisation, with all roles and keys."""
    call.nouns.tenants.members.remove(call.actor, member)


@routes.put("/v1/members/{member}/role", errors=("ambiguous_name",))
def set_role(call: Call, member: str, body: RoleChange) -> MemberAnswer:
    """Set or remove the role of a member in one project or in all projects."""
    role = Role(body.role) if body.role else None
    return member_answer(call.nouns.tenants.members.set_role(call.actor, member, role, body.project))


def member_answer(member: Member) -> MemberAnswer:
    return filled(MemberAnswer, member, roles={place: role.value for place, role in member.roles.items()})
