"""Placements: where a launch would run, and why."""

from teraflock.api.call import Call
from teraflock.api.convert.instance import order_from
from teraflock.api.convert.placement import placement_answer
from teraflock.api.query import InProject
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.tenant.rules import Permission, in_project
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.placement import PlacementAnswer

routes = Routes("placements")


@routes.post(
    "/v1/placements",
    scope=Scope.PROJECT,
    may=Permission.INSTANCE_WRITE,
    work=RouteWork.LOOKUP,
    errors=("unknown_name", "bad_input", "conflict"),
)
def explain_placement(call: Call, query: InProject, body: LaunchRequest) -> PlacementAnswer:
    """Explain where a launch would run now: the hosts, why they were chosen, and why not the others.

    Nothing is launched or reserved. Quotas and budgets are not checked.
    """
    found = call.nouns.instances.explain(call.project, order_from(body))
    return placement_answer(found, sees_hosts=Permission.HOST_READ in in_project(call.actor, call.project))
