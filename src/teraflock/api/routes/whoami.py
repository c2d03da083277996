"""The owner of the API key in use."""

from teraflock.api.call import Call
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.tenant.model import (
    Actor,
    Organisation,
)
from teraflock.wire.whoami import WhoAmI

routes = Routes("whoami")


@routes.get("/v1/whoami", scope=Scope.KEY, errors=("not_found",))
def show_whoami(call: Call) -> WhoAmI:
    """Show who the API key belongs to, and what it allows."""
    return who_am_i(call.actor, call.nouns.tenants.organisations.own(call.actor))


def who_am_i(actor: Actor, organisation: Organisation) -> WhoAmI:
    return filled(
        WhoAmI,
        actor,
        organisation_id=organisation.id,
        organisation_name=organisation.name,
        roles={place: role.value for place, role in actor.roles.items()},
        role_max=actor.role_max.value if actor.role_max else None,
    )
