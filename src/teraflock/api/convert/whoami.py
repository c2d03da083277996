"""Converter of the owner of an API key."""

from teraflock.base.filling import filled
from teraflock.tenant.model import (
    Actor,
    Organisation,
)
from teraflock.wire.whoami import WhoAmI


def who_am_i(actor: Actor, organisation: Organisation) -> WhoAmI:
    return filled(
        WhoAmI,
        actor,
        organisation_id=organisation.id,
        organisation_name=organisation.name,
        roles={place: role.value for place, role in actor.roles.items()},
        role_max=actor.role_max.value if actor.role_max else None,
    )
