"""Hosts, for operators: capacity, cards and their health, charts, who holds what, slices."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from teraflock.base.errors import BadInput
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.host_cards import card_lines, idle_cards
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.host import HostAnswer, HostChange
from teraflock.words.telemetry import load_of

pages = Pages()
ROWS: Final = 40
"""Also how many hosts a request for readings may name."""
HOURS_MAX: Final = 24 * 365
READ: Final[Mapping[str, Any]] = {"scope": Scope.INSTALLATION, "may": Permission.HOST_READ}
WRITE: Final[Mapping[str, Any]] = {"scope": Scope.INSTALLATION, "may": Permission.HOST_WRITE}


@pages.get("/hosts", **READ)
def list_hosts(call: PageCall) -> Answer:
    """All own hosts."""
    return call.page("hosts/list.html", section="hosts", **_listed(call))


@pages.get("/hosts-rows", **READ)
def list_host_rows(call: PageCall) -> Answer:
    """The rows of the list, requested again every ten seconds."""
    return call.part("hosts/rows.html", **_listed(call))


@pages.get("/hosts-capacity", **READ)
def show_capacity(call: PageCall) -> Answer:
    """How many cards are free in the whole installation, and how they are spread."""
    return call.part("hosts/capacity.html", models=call.client.hosts.capacity())


@pages.get("/hosts/{host}", **READ)
def show_host(call: PageCall) -> Answer:
    """One host with its cards and the instances on it."""
    return call.page("hosts/show.html", section="hosts", **_shown(call))


@pages.get("/hosts/{host}/facts", **READ)
def show_host_facts(call: PageCall) -> Answer:
    """What changes on the page of a host."""
    return call.part("hosts/facts.html", **_shown(call))


@pages.post("/hosts/{host}/state", on_error=show_host, **WRITE)
def change_host(call: PageCall) -> Answer:
    """Drain a host, or take it back into use."""
    state, hours = call.form.text("state"), call.form.number("hours")
    if state not in ("ready", "draining"):
        raise BadInput("A host can be `ready` or `draining`", hint="Use the button on the page")
    if hours is not None and hours > HOURS_MAX:
        raise BadInput(f"{hours} hours is too long", hint=f"Write at most {HOURS_MAX}, or leave it empty")
    at = call.now + timedelta(hours=hours) if hours is not None and state == "draining" else None
    change = HostChange(state="ready" if state == "ready" else "draining", drain_at=at)
    host = call.client.hosts.change(call.path["host"], change)
    if host.state == "draining":
        return call.done(
            call.at("hosts", host.name), "{name} gets no new instances from now on", name=host.name
        )
    return call.done(call.at("hosts", host.name), "{name} is in use again", name=host.name)


@pages.post("/hosts/{host}/slices", on_error=show_host, **WRITE)
def divide_card(call: PageCall) -> Answer:
    """Divide a free card into slices, or make it whole again."""
    card, words = call.form.text("card"), call.form.text("profiles").replace(",", " ").split()
    if not card:
        raise BadInput("No card is chosen", hint="Choose a card of this host")
    call.client.hosts.divide(call.path["host"], card, tuple(words))
    return call.done(call.at("hosts", call.path["host"]), "The host divides the card. It takes a few seconds")


def _listed(call: PageCall) -> dict[str, Any]:
    after = call.request.query.text("after")
    page = call.client.hosts.page(after=after, limit=ROWS)
    ids = [each.id for each in page.items]
    read = {each.host_id: each for each in call.client.telemetry.hosts(ids)} if ids else {}
    costs = call.client.hosts.costs(ids) if ids else ()
    return {
        "page": page,
        "after": after,
        "loads": {id: load_of(found) for id, found in read.items()},
        "idle": idle_cards(list(read.values()), costs, call.now),
        "free": _free,
        "percent": _percent,
    }


def _shown(call: PageCall) -> dict[str, Any]:
    client = call.client
    host = client.hosts.get(call.path["host"])
    held = client.operator.instances(host=host.id, limit=ROWS)
    read = next(iter(client.telemetry.hosts([host.id])), None)
    names = {each.instance.id: each.instance.name for each in held.items}
    return {
        "host": host,
        "held": held,
        "reading": read,
        "cards": card_lines(host, read, names),
        "idle": idle_cards([read] if read else [], client.hosts.costs([host.id]), call.now),
        "slicings": client.hosts.slicings(host.id),
        "free": _free,
        "percent": _percent,
    }


def _free(host: HostAnswer) -> int:
    return sum(gpu.free and gpu.healthy for gpu in host.gpus)


def _percent(part: int, whole: int) -> int:
    return min(100, part * 100 // whole) if whole else 0
