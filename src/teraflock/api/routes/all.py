"""All routes of the API. A route that is not here is not served, not documented and not tested."""

from typing import Final

from teraflock.api.route import Route
from teraflock.api.routes import (
    announcement,
    audit,
    bill,
    event,
    health,
    host,
    image,
    instance,
    key,
    member,
    operator,
    organisation,
    project,
    site,
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
        site,
        image,
        instance,
        snapshot,
        bill,
        event,
        operator,
        announcement,
    )
    for route in noun.routes.all
)
