"""Where the form for a launch begins: links from offers and plans to what the reader can launch of them."""

from collections.abc import Iterable
from urllib.parse import urlencode

from teraflock.base.errors import TeraflockError
from teraflock.console.call import PageCall
from teraflock.tenant import rules
from teraflock.tenant.model import Project
from teraflock.tenant.rules import Permission
from teraflock.wire.offer import OfferShape
from teraflock.wire.renting import can_be_launched, options_of


def project_to_launch_in(call: PageCall) -> str:
    """A project in which the reader may launch, as addresses name it; `default` if possible. Empty: there is none."""
    return call.ref_of(_project(call))


def _project(call: PageCall) -> Project | None:
    open_ = [
        each for each in call.projects if Permission.INSTANCE_WRITE in rules.in_project(call.actor, each)
    ]
    return min(open_, key=lambda each: each.name != "default", default=None)


def launch_links(call: PageCall, offers: Iterable[OfferShape]) -> dict[str, str]:
    """By the id of an offer: the form that rents it, if the reader's project has an account at its provider."""
    project = _project(call)
    if project is None:
        return {}
    try:
        usable = set(call.client.providers.usable(project.id))
    except TeraflockError:
        return {}
    address = call.at("projects", call.ref_of(project), "launch")
    return {
        each.id: f"{address}?{urlencode(_fields(each))}"
        for each in offers
        if each.provider in usable and can_be_launched(each)
    }


def _fields(offer: OfferShape) -> dict[str, str]:
    """The fields of the form that rent an offer, at its price at most."""
    shape, options = options_of(offer)
    gpus = {"gpu": shape.gpu, "gpus": str(shape.gpus or "")} if shape.gpu else {}
    return {**{name: str(value) for name, value in options.items() if value}, **gpus, "offer": offer.id}
