"""Estimates: what a training or inference step needs on each GPU."""

from typing import Annotated

import msgspec

from teraflock.api.call import Call
from teraflock.api.route import Routes, Scope, Work
from teraflock.estimate.model import Estimate
from teraflock.plan.task import Task
from teraflock.wire.estimate import EstimateRequest

routes = Routes("estimates")


@routes.post(
    "/v1/estimates",
    scope=Scope.KEY,
    work=Work.COMPUTE,
    errors=("unknown_name", "too_much_work", "unavailable"),
)
def estimate_workload(call: Call, body: EstimateRequest) -> Annotated[bytes, Estimate]:
    """Estimate memory, largest batch and step time of a workload on each GPU.

    The words are the options of `tera estimate`, and the answer is that of `tera estimate --json`. Nothing is stored.
    """
    words = msgspec.json.encode(body)
    return call.services.planner.compute(Task(what="estimate", words=words, with_costs=False))
