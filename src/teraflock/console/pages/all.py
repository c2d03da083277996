"""All pages of the console. A page that is not here is not served and not tested."""

from typing import Final

from teraflock.console.page import ConsolePage
from teraflock.console.pages import (
    account,
    acls,
    alerts,
    balancers,
    bids,
    changes,
    clouds,
    costs,
    costs_of_instance,
    datasets,
    home,
    host_joining,
    hosts,
    instances,
    launch,
    learn,
    networks,
    offers,
    oidc,
    open_ports,
    plan,
    queue,
    reach,
    readings,
    runs,
    security_groups,
    sign_in,
    sign_up,
    ssh_keys,
    team,
    terminal,
    volumes,
)

RESOURCES: Final = (
    runs,
    queue,
    volumes,
    datasets,
    networks,
    security_groups,
    acls,
    open_ports,
    balancers,
    reach,
)
PLANNING: Final = (offers, plan, costs, learn)
PAGES: Final[tuple[ConsolePage, ...]] = tuple(
    page
    for noun in (
        home,
        sign_in,
        sign_up,
        oidc,
        launch,
        instances,
        changes,
        bids,
        costs_of_instance,
        readings,
        terminal,
        team,
        ssh_keys,
        account,
        host_joining,
        hosts,
        alerts,
        clouds,
        *RESOURCES,
        *PLANNING,
    )
    for page in noun.pages.all
)
