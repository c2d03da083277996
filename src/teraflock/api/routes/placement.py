"""Placements: where a launch would run, and why."""

from collections import Counter
from typing import Final

from teraflock.api.call import Call
from teraflock.api.convert.instance import order_from
from teraflock.api.convert.shape import shape_answer
from teraflock.api.query import InProject
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.fleet.placement import ZONE, RejectedHost
from teraflock.fleet.room import Room
from teraflock.instance.placing import Explanation
from teraflock.tenant.rules import Permission, in_project
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.placement import PlacedAnswer, PlacementAnswer, RejectedHostAnswer

routes = Routes("placements")
OTHERS_MAX: Final = 20
REJECTED_MAX: Final = 100


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


def placement_answer(found: Explanation, *, sees_hosts: bool) -> PlacementAnswer:
    decision = found.decision
    counts = Counter(room.host_id for room in decision.chosen)
    chosen = {room.host_id: room for room in decision.chosen}
    return PlacementAnswer(
        shape=shape_answer(found.need),
        instances=found.instances,
        fits=bool(chosen),
        why=decision.why,
        chosen=tuple(_placed(room, counts[room.host_id]) for room in chosen.values()),
        others=tuple(room.name for room in decision.others[:OTHERS_MAX]),
        others_total=len(decision.others),
        rejected=tuple(_rejected(each, sees_hosts) for each in decision.rejected[:REJECTED_MAX]),
        rejected_total=len(decision.rejected),
        reasons=dict(Counter(each.obstacle.reason for each in decision.rejected).most_common()),
    )


def _placed(room: Room, instances: int) -> PlacedAnswer:
    return PlacedAnswer(
        host=room.name,
        site=room.site,
        region=room.region,
        zone=room.labels.get(ZONE, ""),
        instances=instances,
    )


def _rejected(rejected: RejectedHost, sees_hosts: bool) -> RejectedHostAnswer:
    room, obstacle = rejected.room, rejected.obstacle
    return RejectedHostAnswer(
        host=room.name,
        site=room.site,
        region=room.region,
        zone=room.labels.get(ZONE, ""),
        reason=obstacle.reason,
        details=obstacle.details if sees_hosts else "",
    )
