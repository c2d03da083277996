"""All routes of the API. A route that is not here is not served, not documented and not tested."""

from typing import Final

from teraflock.api.route import Route
from teraflock.api.routes import (
    announcement,
    audit,
    bill,
    billing,
    budget,
    credit,
    event,
    health,
    host,
    image,
    instance,
    invoice,
    key,
    member,
    operator,
    organisation,
    price,
    project,
    purchase,
    quota,
    quote,
    shape,
    site,
    snapshot,
    whoami,
)

ROUTES: Final[tuple[Route, ...]] = tuple(
    route
    for noun in (
        health,
        whoami,
        organisation,
        project,
        member,
        key,
        quota,
        audit,
        announcement,
        host,
        shape,
        site,
        image,
        instance,
        snapshot,
        price,
        quote,
        bill,
        budget,
        credit,
        billing,
        purchase,
        invoice,
        event,
        operator,
    )
    for route in noun.routes.all
)
