"""All pages of the console. A page that is not here is not served and not tested."""

from typing import Final

from teraflock.console.page import ConsolePage
from teraflock.console.pages import (
    account,
    clouds,
    costs,
    costs_of_instance,
    home,
    hosts,
    instances,
    launch,
    learn,
    offers,
    plan,
    sign_in,
    team,
    terminal,
)

PLANNING: Final = (offers, plan, costs, learn)
PAGES: Final[tuple[ConsolePage, ...]] = tuple(
    page
    for noun in (
        home,
        sign_in,
        launch,
        instances,
        costs_of_instance,
        terminal,
        team,
        account,
        hosts,
        clouds,
        *PLANNING,
    )
    for page in noun.pages.all
)
