"""Instances: the live list, one instance, and its life. Changes of size, snapshots and ports are in changes.py."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from teraflock.base.errors import TeraflockError
from teraflock.base.quantities import GIB
from teraflock.console.answer import Answer, Forwarded
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.bill import CostAnswer
from teraflock.wire.instance import InstanceAnswer
from teraflock.wire.quote import QuoteAnswer, QuoteRequest
from teraflock.wire.shape import ShapeRequest

pages = Pages()
ROWS: Final = 50
EVENTS: Final = 30
STATES: Final = (
    "running",
    "starting",
    "stopped",
    "failed",
    "queued",
    "stopping",
    "changing",
    "away",
    "deleting",
)
OF_PROJECT: Final = "/projects/{project}/instances"
OF_ONE: Final = f"{OF_PROJECT}/{{instance}}"
READ: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.INSTANCE_READ}
WRITE: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.INSTANCE_WRITE}
ENTER: Final[Mapping[str, Any]] = {"scope": Scope.PROJECT, "may": Permission.INSTANCE_ENTER}


@pages.get(OF_PROJECT, **READ)
def list_instances(call: PageCall) -> Answer:
    """The instances of a project."""
    return call.page("instances/list.html", section="instances", states=STATES, **_listed(call))


@pages.get(f"{OF_PROJECT}-rows", **READ)
def list_rows(call: PageCall) -> Answer:
    """The rows of the list, asked for again when something happens."""
    return call.part("instances/rows.html", **_listed(call))


@pages.get("/projects/{project}/live", stream=True, **READ)
def follow_events(call: PageCall) -> Forwarded:
    """The events of the project since the page was read, as they happen."""
    since = urlencode({"project": call.project.id, "after": call.request.query.text("after")})
    return Forwarded(target=f"/v1/events/stream?{since}")


@pages.get(OF_ONE, **READ)
def show_instance(call: PageCall) -> Answer:
    """One instance."""
    return call.page("instances/show.html", section="instances", **_shown(call), **_changeable(call))


@pages.get(f"{OF_ONE}/facts", **READ)
def show_facts(call: PageCall) -> Answer:
    """What changes on the page of an instance, asked for again when something happens."""
    return call.part("instances/facts.html", **_shown(call))


@pages.get(f"{OF_ONE}/log", long=True, **ENTER)
def show_log(call: PageCall) -> Answer:
    """The end of its log."""
    source = call.request.query.text("source")
    log = call.client.instances.log(call.path["instance"], source=source)
    return call.part("instances/log.html", log=log)


@pages.post(f"{OF_ONE}/start", on_error=show_instance, **WRITE)
def start_instance(call: PageCall) -> Answer:
    """Start it."""
    found = call.client.instances.start(call.path["instance"])
    return call.done(_url(call, found), "Starting {name}", name=found.name)


@pages.post(f"{OF_ONE}/stop", on_error=show_instance, **WRITE)
def stop_instance(call: PageCall) -> Answer:
    """Stop it."""
    found = call.client.instances.stop(call.path["instance"])
    return call.done(_url(call, found), "Stopping {name}. Its disk is kept", name=found.name)


@pages.post(f"{OF_ONE}/restart", on_error=show_instance, **WRITE)
def restart_instance(call: PageCall) -> Answer:
    """Stop it and start it again."""
    found = call.client.instances.restart(call.path["instance"])
    return call.done(_url(call, found), "Restarting {name}", name=found.name)


@pages.post(f"{OF_ONE}/acknowledge", on_error=show_instance, **WRITE)
def acknowledge_notice(call: PageCall) -> Answer:
    """Clear its notice."""
    found = call.client.instances.acknowledge(call.path["instance"])
    return call.done(_url(call, found), "The notice is cleared")


@pages.get(f"{OF_ONE}/delete", **WRITE)
def confirm_delete(call: PageCall) -> Answer:
    """Say what is lost, before it is deleted."""
    ref = call.path["instance"]
    found = call.client.instances.get(ref)
    snapshots = call.client.snapshots.list(ref)
    return call.page("instances/delete.html", section="instances", instance=found, snapshots=snapshots)


@pages.post(f"{OF_ONE}/delete", on_error=confirm_delete, **WRITE)
def delete_instance(call: PageCall) -> Answer:
    """Delete it with its disk and snapshots."""
    found = call.client.instances.delete(call.path["instance"])
    return call.done(call.url("instances"), "Deleting {name}", name=found.name)


def _url(call: PageCall, instance: InstanceAnswer) -> str:
    return call.url("instances", instance.name)


def _listed(call: PageCall) -> dict[str, Any]:
    query = call.request.query
    word, state, after = query.text("name"), query.text("state"), query.text("after")
    name = f"*{word}*" if word and not set(word) & set("*?") else word
    states = (state,) if state in STATES else ()
    page = call.client.instances.page(after=after, limit=ROWS, states=states, name=name.lower())
    costs: dict[str, CostAnswer] = {}
    if page.items and call.may(Permission.USAGE_READ):
        found = call.client.bills.cost_page(after=after, limit=ROWS, states=states, name=name.lower())
        costs = {each.instance_id: each for each in found.items}
    return {"page": page, "costs": costs, "word": word, "state": state, "after": after}


def _shown(call: PageCall) -> dict[str, Any]:
    client, ref = call.client, call.path["instance"]
    found = client.instances.get(ref)
    cost = None
    if call.may(Permission.USAGE_READ):
        costs = client.bills.cost_page(name=found.name, limit=1).items
        cost = next((each for each in costs if each.instance_id == found.id), None)
    return {
        "instance": found,
        "cost": cost,
        "events": client.instances.events(found.id, limit=EVENTS, newest_first=True).items,
        "snapshots": _snapshots(call, found),
        "volumes": client.volumes.list(instance=found.id),
        "gib": GIB,
    }


def _changeable(call: PageCall) -> dict[str, Any]:
    """What the forms for changes show. Prices are loaded after the page, because a quote reads all hosts."""
    may = call.may(Permission.NETWORK_READ)
    return {"ports": call.client.published_ports.list(instance=call.path["instance"]) if may else ()}


def quote_of(
    call: PageCall, instance: InstanceAnswer, shape: ShapeRequest | None = None
) -> QuoteAnswer | None:
    """The price of an instance with this shape, or with its own. None: no permission, or not priced."""
    own = instance.shape
    asked = shape or ShapeRequest(
        gpu=own.gpu,
        gpus=own.gpus or None,
        vcpus=own.vcpus,
        ram_bytes=own.ram_bytes,
        disk_bytes=own.disk_bytes,
    )
    if not call.may(Permission.USAGE_READ):
        return None
    mode: Any = instance.mode if instance.mode in ("on-demand", "spot") else "on-demand"
    try:
        quote = call.client.quotes.get(QuoteRequest(shape=asked, mode=mode))
    except TeraflockError:
        return None
    return quote if quote.is_priced else None


def _snapshots(call: PageCall, found: InstanceAnswer) -> Any:
    try:
        return call.client.snapshots.list(found.id)
    except TeraflockError:  # an engine without snapshots
        return ()
