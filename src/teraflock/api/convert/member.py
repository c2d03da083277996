"""Members on the wire."""

from teraflock.tenant.model import (
    Member,
)
from teraflock.wire.member import MemberAnswer


def member_answer(member: Member) -> MemberAnswer:
    return MemberAnswer(
        id=member.id,
        name=member.name,
        is_operator=member.is_operator,
        roles={place: role.value for place, role in member.roles.items()},
        created_at=member.created_at,
    )
