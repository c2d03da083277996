"""Members on the wire."""

from teraflock.base.filling import filled
from teraflock.tenant.model import (
    Member,
)
from teraflock.wire.member import MemberAnswer


def member_answer(member: Member) -> MemberAnswer:
    return filled(MemberAnswer, member, roles={place: role.value for place, role in member.roles.items()})
