"""Queued launches on the wire."""

from collections.abc import Mapping

from teraflock.api.convert.shape import shape_answer
from teraflock.base.filling import filled
from teraflock.instance.queue.model import QueuedLaunch, QueuedOfTenant, QueuePlace
from teraflock.wire.queue import QueuedAnswer, QueuedOfTenantAnswer


def queued_of_tenant_answer(found: QueuedOfTenant, places: Mapping[str, QueuePlace]) -> QueuedOfTenantAnswer:
    return QueuedOfTenantAnswer(
        organisation=found.organisation, project=found.project, queued=queued_answer(found.queued, places)
    )


def queued_answer(queued: QueuedLaunch, places: Mapping[str, QueuePlace]) -> QueuedAnswer:
    """`places` has the places of all waiting launches."""
    place = places.get(queued.id)
    return filled(
        QueuedAnswer,
        queued,
        shape=shape_answer(queued.need),
        place=place.place if place else None,
        waiting=len(places),
        expected_at=place.expected_at if place else None,
    )
