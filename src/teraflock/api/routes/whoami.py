"""Who it is that asks."""

from teraflock.api.call import Call
from teraflock.api.convert.whoami import who_am_i
from teraflock.api.route import Routes, Scope
from teraflock.wire.whoami import WhoAmI

routes = Routes("whoami")


@routes.get("/v1/whoami", scope=Scope.KEY, errors=("not_found",))
def show_whoami(call: Call) -> WhoAmI:
    """Who stands behind the key in use, and what they may."""
    return who_am_i(call.actor, call.nouns.tenants.organisations.own(call.actor))
