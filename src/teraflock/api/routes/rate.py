"""Exchange rates."""

from teraflock.api.call import Call
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.wire.rate import RateShape, shape_rate

routes = Routes("rates")


@routes.get("/v1/rates", scope=Scope.KEY, work=RouteWork.LOOKUP)
def list_rates(call: Call) -> list[RateShape]:
    """List the exchange rates that compare prices in different currencies.

    Each day uses the newest rate up to that day. The response is that of `tera rates --json`.
    """
    return [shape_rate(rate) for rate in call.services.planner.rates().rows()]
