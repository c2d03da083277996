"""Recommendations: GPU models and offers for a purpose."""

from typing import Annotated

import msgspec

from teraflock.api.call import Call
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.plan.task import PlannerTask
from teraflock.wire.recommendation import RecommendationRequest, RecommendationShape

routes = Routes("recommendations")


@routes.post(
    "/v1/recommendations",
    scope=Scope.KEY,
    work=RouteWork.COMPUTE,
    errors=("unknown_name", "too_much_work", "unavailable"),
)
def recommend_gpus(call: Call, body: RecommendationRequest) -> Annotated[bytes, RecommendationShape]:
    """Recommend GPU models and their cheapest offers for a purpose.

    Purposes are `training`, `large-training`, `inference`, `hpc`, `rendering`, `video` and `learning`. The other fields
    are the filters of `GET /v1/offers`. The response is that of `tera recommend --json`. Nothing is stored.
    """
    words = msgspec.json.encode(body)
    return call.services.planner.compute(PlannerTask(what="recommend", words=words, with_costs=False))
