"""All routes of the API. A route that is not here is not served, not documented and not tested."""

from typing import Final

from teraflock.api.route import Route
from teraflock.api.routes import (
    announcement,
    audit,
    bill,
    estimate,
    event,
    gpu,
    health,
    host,
    image,
    instance,
    key,
    member,
    offer,
    operator,
    organisation,
    plan,
    project,
    provider,
    rate,
    snapshot,
)

ROUTES: Final[tuple[Route, ...]] = tuple(
    route
    for noun in (
        health,
        organisation,
        project,
        member,
        key,
        audit,
        host,
        image,
        instance,
        snapshot,
        bill,
        event,
        operator,
        announcement,
        gpu,
        offer,
        provider,
        rate,
        estimate,
        plan,
    )
    for route in noun.routes.all
)
