"""All pages of the console. A page that is not here is not served and not tested."""

from typing import Final

from teraflock.console.page import ConsolePage
from teraflock.console.pages import (
    account,
    costs_of_instance,
    home,
    hosts,
    instances,
    launch,
    sign_in,
    team,
    terminal,
)

PAGES: Final[tuple[ConsolePage, ...]] = tuple(
    page
    for noun in (home, sign_in, launch, instances, costs_of_instance, terminal, team, account, hosts)
    for page in noun.pages.all
)
