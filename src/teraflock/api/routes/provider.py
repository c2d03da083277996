"""Providers: how they bill, and their spot terms."""

from teraflock.api.call import Call
from teraflock.api.query import NameQuery
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.catalog.providers import all_providers, find_provider
from teraflock.wire.provider import ProviderShape, shape_provider

routes = Routes("providers")


@routes.get("/v1/providers", scope=Scope.KEY, work=RouteWork.LOOKUP, errors=("unknown_name",))
def list_providers(call: Call, query: NameQuery) -> list[ProviderShape]:
    """List providers and facts about them.

    The response is that of `tera providers --json`.
    """
    chosen = all_providers() if query.name is None else (find_provider(query.name),)
    return [shape_provider(each) for each in chosen]
