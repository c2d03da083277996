"""Queued launches on the wire."""

from collections.abc import Mapping

from teraflock.api.convert.shape import shape_answer
from teraflock.instance.queue.model import QueuedLaunch, QueuedOfTenant, QueuePlace
from teraflock.wire.queue import QueuedAnswer, QueuedOfTenantAnswer


def queued_of_tenant_answer(found: QueuedOfTenant, places: Mapping[str, QueuePlace]) -> QueuedOfTenantAnswer:
    return QueuedOfTenantAnswer(
        organisation=found.organisation, project=found.project, queued=queued_answer(found.queued, places)
    )


def queued_answer(queued: QueuedLaunch, places: Mapping[str, QueuePlace]) -> QueuedAnswer:
    """`places` has the places of all waiting launches."""
    place = places.get(queued.id)
    return QueuedAnswer(
        id=queued.id,
        name=queued.name,
        state=queued.state,
        shape=shape_answer(queued.need),
        instances=queued.instances,
        priority=queued.priority,
        place=place.place if place else None,
        waiting=len(places),
        expected_at=place.expected_at if place else None,
        reason=queued.reason,
        instance_ids=queued.instance_ids,
        created_at=queued.created_at,
        created_by=queued.created_by,
        ended_at=queued.ended_at,
    )
