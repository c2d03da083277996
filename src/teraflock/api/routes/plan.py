"""Plans: the cheapest offers for a job or a machine."""

from typing import Annotated

import msgspec

from teraflock.api.call import Call
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.plan.task import PlannerTask
from teraflock.wire.plan import PlanRequest, PlanShape

routes = Routes("plans")


@routes.post(
    "/v1/plans",
    scope=Scope.KEY,
    work=RouteWork.COMPUTE,
    errors=("unknown_name", "too_much_work", "unavailable"),
)
def make_plan(call: Call, body: PlanRequest) -> Annotated[bytes, PlanShape]:
    """Find the cheapest offers for a job, or for a machine for a number of hours.

    The fields are the options of `tera plan`. The response is that of `tera plan --json`: the best choices, and a
    reason for every offer that was not chosen. If no offer meets the request, `no_plan` says why. Only operators see
    own hosts and their cost. Nothing is stored.
    """
    words = msgspec.json.encode(body)
    return call.services.planner.compute(
        PlannerTask(what="plan", words=words, with_costs=call.actor.is_operator)
    )
