"""Exchange rates."""

from teraflock.api.call import Call
from teraflock.api.route import Routes, Scope, Work
from teraflock.wire.rate import RateShape, shape_rate

routes = Routes("rates")


@routes.get("/v1/rates", scope=Scope.KEY, work=Work.LOOKUP)
def list_rates(call: Call) -> list[RateShape]:
    """List the exchange rates by which prices in several currencies are compared.

    For a day the newest rate not after it counts. The answer is that of `tera rates --json`.
    """
    return [shape_rate(rate) for rate in call.services.planner.rates().rows()]
