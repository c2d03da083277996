"""Launch: a form that shows the price while it is filled in."""

import shlex
from hashlib import sha256
from typing import Any, Final

import msgspec

from teraflock.base.errors import BadInput, TeraflockError
from teraflock.base.money import parse_micros
from teraflock.base.quantities import GIB
from teraflock.console.answer import Answer
from teraflock.console.call import PageCall
from teraflock.console.page import Pages
from teraflock.console.request import Form
from teraflock.tenant.admission import Scope
from teraflock.tenant.rules import Permission
from teraflock.wire.image import ImageAnswer
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.quote import QuoteRequest
from teraflock.wire.shape import NamedShapeAnswer, ShapeRequest

pages = Pages()
PATH: Final = "/projects/{project}/launch"
CUSTOM: Final = "custom"
SECONDS_PER_HOUR: Final = 3600
PICKS_MAX: Final = 50
"""How many volumes and datasets the form offers to tick. Others are typed."""


@pages.get(PATH, scope=Scope.PROJECT, may=Permission.INSTANCE_WRITE)
def show_launch(call: PageCall) -> Answer:
    """The form."""
    images = [each for each in call.client.images.list() if each.state == "ready"]
    shapes = sorted(call.client.shapes.list(), key=lambda each: not each.shape.gpus)
    form = call.form if call.error else call.request.query
    chosen = form.text("shape") or _first_free(shapes)
    rents = bool(form.text("provider"))
    return call.page(
        "instances/launch.html",
        section="instances",
        images=images,
        image=form.text("image") or _first_image(images),
        shapes=shapes,
        chosen=chosen,
        filled=form,
        once=form.text("once") or call.services.random_bytes(16).hex(),
        quote=None,
        rents=rents,
        volumes=() if rents else [each for each in call.client.volumes.list() if each.state == "free"],
        datasets=() if rents else [each for each in call.client.datasets.list() if each.state == "ready"],
        picks_max=PICKS_MAX,
    )


@pages.get("/projects/{project}/quote", scope=Scope.PROJECT, may=Permission.USAGE_READ)
def show_quote(call: PageCall) -> Answer:
    """The price of what is in the form so far."""
    query = call.request.query
    try:
        request = QuoteRequest(
            shape=_shape(call),
            mode=_mode(query.text("mode")),
            instances=query.number("instances") or 1,
            **_rented(query),
        )
        quote = call.client.quotes.get(request)
        return call.part("instances/quote.html", quote=quote)
    except TeraflockError as error:
        call.error = error
        return call.part("instances/quote.html", quote=None)


@pages.post(PATH, scope=Scope.PROJECT, may=Permission.INSTANCE_WRITE, on_error=show_launch)
def launch_instances(call: PageCall) -> Answer:
    """Launch."""
    form = call.form
    hours = form.number("hours")
    request = LaunchRequest(
        name=form.text("name").lower() or None,
        shape=_shape(call),
        image=form.text("image") or "base",
        access=_access(form.text("access")),
        command=_command(form.text("command")) if form.text("access") == "command" else (),
        authorized_keys=tuple(line.strip() for line in form.text("keys").splitlines() if line.strip()),
        labels=_labels(form.text("labels")),
        mode=_mode(form.text("mode")),
        instances=form.number("instances") or 1,
        time_limit_seconds=None if hours is None else hours * SECONDS_PER_HOUR,
        delete_when_done=bool(form.text("delete_when_done")),
        user_data=form.raw("user_data").strip("\n"),
        bid_micros_per_hour=money_of(form, "bid") if form.text("mode") == "bid" else None,
        max_price_micros_per_hour=money_of(form, "max_price") if form.text("provider") else None,
        offer=form.text("offer"),
        data=_picked(form, "data"),
        volumes=_picked(form, "volumes"),
        queue=bool(form.text("queue")),
        **_rented(form),
    )
    launched = call.client.instances.launch(request, idempotency_key=_once(form.text("once"), request))
    if launched.queued is not None:
        return call.done(call.url("queue"), "There is no room now: the launch waits in the queue")
    made = launched.items
    if not made:
        return call.done(call.url("instances"), "It starts in about a minute, when others have left its GPUs")
    if len(made) > 1:
        return call.done(call.url("instances"), "Launching {count} instances", count=len(made))
    return call.done(call.url("instances", made[0].name), "Launching {name}", name=made[0].name)


def _rented(form: Form) -> dict[str, Any]:
    """What is rented at a provider. Empty: it runs on own hosts."""
    return {name: form.text(name) for name in ("provider", "type", "region")} if form.text("provider") else {}


def money_of(form: Form, name: str) -> int | None:
    text = form.text(name)
    try:
        return parse_micros(text) if text else None
    except ValueError:
        raise BadInput(
            f"`{text[:40]}` is not an amount of money", hint="Write a number such as 1.20"
        ) from None


def _picked(form: Form, name: str) -> tuple[str, ...]:
    """What is ticked, and what is typed with spaces or commas between."""
    typed = form.text(f"more_{name}").replace(",", " ").split()
    return tuple(dict.fromkeys((*form.many(name), *typed)))


def _command(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise BadInput(f"The command cannot be read: {error}", hint="Close every quote in it") from None


def _once(text: str, request: LaunchRequest) -> str:
    """Sending the same form twice launches once. Going back and changing it launches something else."""
    if not text.isalnum() or len(text) > 64:
        return ""
    return f"console-{text}-{sha256(msgspec.json.encode(request, order='deterministic')).hexdigest()[:16]}"


def _shape(call: PageCall) -> ShapeRequest:
    form = call.form if call.request.method == "POST" else call.request.query
    ram, disk = form.number("ram_gb"), form.number("disk_gb")
    name = "" if form.text("provider") else form.text("shape")
    if name and name != CUSTOM:
        return ShapeRequest(name=name, disk_bytes=None if disk is None else disk * GIB)
    return ShapeRequest(
        gpu=form.text("gpu"),
        gpus=form.number("gpus") if form.text("gpu") else None,
        vcpus=form.number("vcpus"),
        ram_bytes=None if ram is None else ram * GIB,
        disk_bytes=None if disk is None else disk * GIB,
    )


def _first_free(shapes: list[NamedShapeAnswer]) -> str:
    """The smallest shape with a GPU that is free, otherwise the smallest that is free."""
    free = [each for each in shapes if each.free]
    with_gpu = [each for each in free if each.shape.gpus]
    return next((each.name for each in (*with_gpu, *free, *shapes)), CUSTOM)


def _first_image(images: list[ImageAnswer]) -> str:
    names = [each.name for each in images]
    return "base" if "base" in names or not names else names[0]


def _mode(text: str) -> Any:
    return text if text in ("on-demand", "spot", "bid") else "on-demand"


def _access(text: str) -> Any:
    return text if text in ("ssh", "jupyter", "command") else "ssh"


def _labels(text: str) -> dict[str, str]:
    labels = {}
    for word in text.replace(",", " ").split():
        key, equals, value = word.partition("=")
        if not equals:
            raise BadInput(
                f"`{word[:60]}` is not a label", hint="Write labels as `team=vision`, separated by spaces"
            )
        labels[key] = value
    return labels
