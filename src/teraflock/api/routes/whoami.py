"""The owner of the API key in use."""

from teraflock.api.call import Call
from teraflock.api.convert.whoami import who_am_i
from teraflock.api.route import Routes, Scope
from teraflock.wire.whoami import WhoAmI

routes = Routes("whoami")


@routes.get("/v1/whoami", scope=Scope.KEY, errors=("not_found",))
def show_whoami(call: Call) -> WhoAmI:
    """Show who the API key belongs to, and what it allows."""
    return who_am_i(call.actor, call.nouns.tenants.organisations.own(call.actor))
