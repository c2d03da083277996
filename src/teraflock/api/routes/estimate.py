"""Estimates of memory and time of a training or inference step on each GPU model."""

from typing import Annotated

import msgspec

from teraflock.api.call import Call
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.estimate.model import Estimate
from teraflock.plan.task import PlannerTask
from teraflock.wire.estimate import EstimateRequest

routes = Routes("estimates")


@routes.post(
    "/v1/estimates",
    scope=Scope.KEY,
    work=RouteWork.COMPUTE,
    errors=("unknown_name", "too_much_work", "unavailable"),
)
def estimate_workload(call: Call, body: EstimateRequest) -> Annotated[bytes, Estimate]:
    """Estimate memory, largest batch and step time of a workload on each GPU model.

    The fields are the options of `tera estimate`. The response is that of `tera estimate --json`. Nothing is stored.
    """
    words = msgspec.json.encode(body)
    return call.services.planner.compute(PlannerTask(what="estimate", words=words, with_costs=False))
