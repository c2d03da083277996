"""Accounts at public clouds, for operators: state, limits, machines, cost, and what was left over."""

from collections.abc import Mapping
from typing import Any, Final

from teraflock.base.errors import TeraflockError
from teraflock.catalog.renting import renting
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission

pages = Pages()
READ: Final[Mapping[str, Any]] = {"scope": Scope.INSTALLATION, "may": Permission.HOST_READ}


@pages.get("/clouds", **READ)
def list_clouds(call: PageCall) -> Answer:
    """All accounts at clouds."""
    return call.page(
        "clouds/list.html", section="clouds", accounts=call.client.accounts.list(), renting=renting
    )


@pages.get("/clouds/{account}/orphans", **READ)
def list_orphans(call: PageCall) -> Answer:
    """What an account has at its provider that no instance owns. Asks the provider, so only on demand."""
    account = call.client.accounts.get(call.path["account"])
    try:
        orphans, problem = call.client.accounts.orphans(account.name), ""
    except TeraflockError as error:
        orphans, problem = (), error.sentence
    return call.part("clouds/orphans.html", account=account, orphans=orphans, problem=problem)
