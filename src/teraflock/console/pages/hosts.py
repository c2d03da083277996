"""Hosts, for operators: capacity, cards, who holds what."""

from collections.abc import Mapping
from typing import Any, Final

from teraflock.base.errors import BadInput
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.host import HostAnswer, HostChange

pages = Pages()
ROWS: Final = 100
READ: Final[Mapping[str, Any]] = {"scope": Scope.INSTALLATION, "may": Permission.HOST_READ}


@pages.get("/hosts", **READ)
def list_hosts(call: PageCall) -> Answer:
    """All own hosts."""
    page = call.client.hosts.page(after=call.request.query.text("after"), limit=ROWS)
    return call.page("hosts/list.html", section="hosts", page=page, free=_free, percent=_percent)


@pages.get("/hosts/{host}", **READ)
def show_host(call: PageCall) -> Answer:
    """One host with its cards and the instances on it."""
    host = call.client.hosts.get(call.path["host"])
    held = call.client.operator.instances(host=host.id, limit=ROWS)
    return call.page("hosts/show.html", section="hosts", host=host, held=held, free=_free, percent=_percent)


@pages.post("/hosts/{host}/state", scope=Scope.INSTALLATION, may=Permission.HOST_WRITE, on_error=show_host)
def change_host(call: PageCall) -> Answer:
    """Drain a host, or take it back into use."""
    state = call.form.text("state")
    if state not in ("ready", "draining"):
        raise BadInput("A host can be `ready` or `draining`", hint="Use the button on the page")
    host = call.client.hosts.change(
        call.path["host"], HostChange(state="ready" if state == "ready" else "draining")
    )
    if host.state == "draining":
        return call.done(
            call.at("hosts", host.name), "{name} gets no new instances from now on", name=host.name
        )
    return call.done(call.at("hosts", host.name), "{name} is in use again", name=host.name)


def _free(host: HostAnswer) -> int:
    return sum(gpu.free and gpu.healthy for gpu in host.gpus)


def _percent(part: int, whole: int) -> int:
    return min(100, part * 100 // whole) if whole else 0
