"""Providers: how they bill, and their spot terms."""

from teraflock.api.call import Call
from teraflock.api.query import InProject, NameQuery
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.catalog.providers import all_providers, find_provider
from teraflock.tenant.rules import Permission
from teraflock.wire.provider import ProviderShape, UsableProviders, shape_provider

routes = Routes("providers")


@routes.get("/v1/providers", scope=Scope.KEY, work=RouteWork.LOOKUP, errors=("unknown_name",))
def list_providers(call: Call, query: NameQuery) -> list[ProviderShape]:
    """List providers and facts about them.

    The response is that of `tera providers --json`.
    """
    chosen = all_providers() if query.name is None else (find_provider(query.name),)
    return [shape_provider(each) for each in chosen]


@routes.get("/v1/usable-providers", scope=Scope.PROJECT, may=Permission.INSTANCE_READ)
def list_usable_providers(call: Call, query: InProject) -> UsableProviders:
    """List the providers at which a project may rent machines: the operator shared an account there with it."""
    return UsableProviders(items=tuple(sorted(call.nouns.instances.providers(call.project))))
