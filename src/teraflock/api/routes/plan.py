"""Plans: the cheapest ways to finish a job, or to have a machine."""

from typing import Annotated

import msgspec

from teraflock.api.call import Call
from teraflock.api.route import Routes, Scope, Work
from teraflock.plan.task import Task
from teraflock.wire.plan import PlanRequest, PlanShape

routes = Routes("plans")


@routes.post(
    "/v1/plans", scope=Scope.KEY, work=Work.COMPUTE, errors=("unknown_name", "too_much_work", "unavailable")
)
def make_plan(call: Call, body: PlanRequest) -> Annotated[bytes, PlanShape]:
    """Plan a job, or a machine for some hours, over all offers.

    The words are the options of `tera plan`, and the answer is that of `tera plan --json`: the best choices, and for
    every other offer the reason why not. Where nothing fits, `no_plan` says why. Own servers with their costs are in
    the plans of operators only. Nothing is stored.
    """
    words = msgspec.json.encode(body)
    return call.services.planner.compute(Task(what="plan", words=words, with_costs=call.actor.is_operator))
