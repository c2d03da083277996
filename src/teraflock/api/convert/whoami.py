"""Converter of the owner of an API key."""

from teraflock.tenant.model import (
    Actor,
    Organisation,
)
from teraflock.wire.whoami import WhoAmI


def who_am_i(actor: Actor, organisation: Organisation) -> WhoAmI:
    return WhoAmI(
        member_id=actor.member_id,
        member_name=actor.member_name,
        organisation_id=organisation.id,
        organisation_name=organisation.name,
        is_operator=actor.is_operator,
        roles={place: role.value for place, role in actor.roles.items()},
        key_id=actor.key_id,
        project_id=actor.project_id,
        role_max=actor.role_max.value if actor.role_max else None,
        expires_at=actor.expires_at,
    )
