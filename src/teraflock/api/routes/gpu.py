"""GPU models and their figures."""

from teraflock.api.call import Call
from teraflock.api.query import NameQuery
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.catalog.gpus import gpus_named, known_gpus
from teraflock.wire.gpu import GpuShape, shape_gpu

routes = Routes("gpus")


@routes.get("/v1/gpus", scope=Scope.KEY, work=RouteWork.LOOKUP, errors=("unknown_name",))
def list_gpus(call: Call, query: NameQuery) -> list[GpuShape]:
    """List GPU models with their memory, speed and power.

    The response is that of `tera gpus --json`.
    """
    own = call.services.planner.own_cards()
    found = known_gpus(own) if query.name is None else gpus_named(query.name, own)
    return [shape_gpu(each) for each in found]
