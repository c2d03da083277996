"""Providers: how they bill, and what spot means there."""

from teraflock.api.call import Call
from teraflock.api.query import NameQuery
from teraflock.api.route import Routes, Scope, Work
from teraflock.catalog.providers import all_providers, find_provider
from teraflock.wire.provider import ProviderShape, shape_provider

routes = Routes("providers")


@routes.get("/v1/providers", scope=Scope.KEY, work=Work.LOOKUP, errors=("unknown_name",))
def list_providers(call: Call, query: NameQuery) -> list[ProviderShape]:
    """List the providers of offers and what is known of each.

    The answer is that of `tera providers --json`.
    """
    chosen = all_providers() if query.name is None else (find_provider(query.name),)
    return [shape_provider(each) for each in chosen]
