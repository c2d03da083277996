"""Shapes: named sizes of instances."""

from teraflock.api.call import Call
from teraflock.api.convert.shape import named_shape_answer
from teraflock.api.route import Routes, Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.shape import ShapeList

routes = Routes("shapes")


@routes.get("/v1/shapes", scope=Scope.ANYWHERE, may=Permission.INSTANCE_READ)
def list_shapes(call: Call) -> ShapeList:
    """List named shapes, and how many of each could be launched now."""
    return ShapeList(items=tuple(map(named_shape_answer, call.nouns.fleet.shapes())))
