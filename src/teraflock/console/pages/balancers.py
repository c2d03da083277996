"""Load balancers: the list, and one with the state of its backends."""

from typing import Any, Final

from teraflock.base.errors import BadInput
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.pages.network_tabs import PROJECT, READ, WRITE, instance_names, needed, network_page
from teraflock.wire.balancer import BalancerRequest

pages = Pages()
ALL: Final = f"{PROJECT}/balancers"
ONE: Final = f"{ALL}/{{balancer}}"


@pages.get(ALL, **READ)
def list_balancers(call: PageCall) -> Answer:
    """The load balancers of a project."""
    found = call.client.balancers.list()
    return network_page(
        call, "balancers", "networks/balancers.html", balancers=found, names=instance_names(call)
    )


@pages.post(ALL, on_error=list_balancers, **WRITE)
def create_balancer(call: PageCall) -> Answer:
    """Create a load balancer."""
    form = call.form
    port, target = form.number("port"), form.number("target_port")
    if port is None:
        raise BadInput("The port of the load balancer is missing", hint="Write a number such as 80")
    words = form.text("backends").replace(",", " ").split()
    is_http: Any = "http" if form.text("protocol") == "http" else "tcp"
    request = BalancerRequest(
        name=needed(call, "name", "The name of the load balancer"),
        port=min(port, 1 << 31),
        target_port=None if target is None else min(target, 1 << 31),
        instances=tuple(each for each in words if "=" not in each),
        label=next((each for each in words if "=" in each), ""),
        protocol=is_http,
        check=f"http:{form.text('check')}" if form.text("check") else "tcp",
        certificate=form.raw("certificate").strip(),
        key=form.raw("key").strip(),
        publish=bool(form.text("publish")),
    )
    made = call.client.balancers.create(request)
    return call.done(call.url("balancers", made.name), "The load balancer {name} is created", name=made.name)


@pages.get(ONE, long=True, **READ)
def show_balancer(call: PageCall) -> Answer:
    """One load balancer with its backends."""
    found = call.client.balancers.get(call.path["balancer"])
    return network_page(
        call, "balancers", "networks/balancer.html", balancer=found, names=instance_names(call)
    )


@pages.get(f"{ONE}/facts", long=True, **READ)
def show_balancer_facts(call: PageCall) -> Answer:
    """The state of its backends, requested again every few seconds."""
    return call.part(
        "networks/balancer_facts.html", balancer=call.client.balancers.get(call.path["balancer"])
    )


@pages.post(f"{ONE}/delete", on_error=show_balancer, **WRITE)
def delete_balancer(call: PageCall) -> Answer:
    """Delete a load balancer."""
    call.client.balancers.delete(call.path["balancer"])
    name = call.path["balancer"]
    return call.done(call.url("balancers"), "The load balancer {name} is deleted", name=name)


@pages.post(f"{ONE}/backends", on_error=show_balancer, **WRITE)
def add_backend(call: PageCall) -> Answer:
    """Add a backend."""
    name = needed(call, "instance", "The name of the instance")
    call.client.balancers.add(call.path["balancer"], (name,))
    return call.done(_url(call), "{name} is a backend now", name=name)


@pages.post(f"{ONE}/backends/{{instance}}/remove", on_error=show_balancer, **WRITE)
def remove_backend(call: PageCall) -> Answer:
    """Remove a backend."""
    name = call.path["instance"]
    call.client.balancers.remove(call.path["balancer"], (name,))
    return call.done(_url(call), "{name} is not a backend any more", name=name)


def _url(call: PageCall) -> str:
    return call.url("balancers", call.path["balancer"])
