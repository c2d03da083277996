"""Who can reach whom: a picture, and a tester that says which rule decides about a connection."""

from typing import Final

from teraflock.base.errors import Refused, TeraflockError
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.network_tabs import NAMES_MAX, PROJECT, READ, network_page
from teraflock.tenant.rules import Permission
from teraflock.wire.network import NetworkCheckAnswer
from teraflock.words.network import INTERNET, picture

pages = Pages()
PATH: Final = f"{PROJECT}/reach"
PROTOCOLS: Final = ("tcp", "udp", "icmp")


@pages.get(PATH, **READ)
def show_reach(call: PageCall) -> Answer:
    """The tester and the picture."""
    is_asked = bool(call.request.query.text("source"))
    names = []
    if call.may(Permission.INSTANCE_READ):
        names = [each.name for each in call.client.instances.page(limit=NAMES_MAX).items]
    return network_page(
        call,
        "reach",
        "networks/reach.html",
        ends=[INTERNET, *names],
        protocols=PROTOCOLS,
        asked=call.request.query,
        verdict=_verdict(call) if is_asked else None,
    )


@pages.get(f"{PATH}-check", **READ)
def check_reach(call: PageCall) -> Answer:
    """Whether the connection in the form would pass."""
    return call.part("networks/verdict.html", asked=call.request.query, verdict=_verdict(call))


@pages.get(f"{PATH}-picture", **READ)
def draw_reach(call: PageCall) -> Answer:
    """The picture of all ends."""
    try:
        graph = call.client.networks.graph()
    except Refused as error:  # too many instances for a picture
        return call.part("networks/picture.html", graph=None, svg="", why=error.sentence)
    return call.part("networks/picture.html", graph=graph, svg=picture(graph), why="")


def _verdict(call: PageCall) -> NetworkCheckAnswer | None:
    """The answer. None: the question was wrong, and `call.error` says why."""
    query = call.request.query
    kind = query.text("protocol") if query.text("protocol") in PROTOCOLS else "tcp"
    port = "" if kind == "icmp" else query.text("port")
    try:
        return call.client.networks.check(
            query.text("source")[:100], query.text("target")[:100], protocol=kind, port=port[:20]
        )
    except TeraflockError as error:
        call.error = error
        return None
