"""`tera resize`: change the size of an instance. A change of GPUs restarts it and needs confirmation."""

from typing import TYPE_CHECKING, Any, Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.quantities import memory_text
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected
from teraflock.cli.instance.costs import costs_by_id
from teraflock.cli.instance.lifecycle import act_on, tell_states
from teraflock.cli.options import json_option, project_option, wait_option, yes_option
from teraflock.cli.output import remark
from teraflock.cli.shape_options import shape_from, shape_options
from teraflock.wire.instance import ResizeRequest
from teraflock.wire.shape import ShapeRequest
from teraflock.words.bill import price_text
from teraflock.words.shape import cards_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.bill import CostAnswer
    from teraflock.wire.instance import InstanceAnswer

HELP: Final = """Change the size of an instance. Options that you leave out keep their value.

vCPUs, memory and a larger disk take effect while the instance runs. A change of GPUs restarts it, after a confirmation.

\b
Examples:
  tera resize web --vcpus 4 --ram 16
  tera resize train --gpus 4
  tera resize train --gpus 0 --yes
"""


@click.command(help=HELP)
@click.argument("name")
@shape_options
@yes_option
@wait_option(default=True)
@project_option
@json_option
def command(
    name: str, project: str | None, yes: bool, wait: bool, timeout: float, as_json: bool, **words: Any
) -> None:
    gpus_given = words["gpus"]
    shape = shape_from(words)
    if gpus_given is None and shape.gpu:
        shape = ShapeRequest(
            name=shape.name,
            gpu=shape.gpu,
            vcpus=shape.vcpus,
            ram_bytes=shape.ram_bytes,
            disk_bytes=shape.disk_bytes,
        )  # another GPU model, the same number of GPUs
    if shape == ShapeRequest():
        raise BadInput(
            "No change was given", hint="Name the new size, such as `--vcpus 4 --ram 16` or `--gpus 2`"
        )
    with connected(project) as client:
        instance = client.instances.get(name)
        if not yes and instance.state == "running" and changes_cards(client, instance, shape):
            has = cards_text(instance.shape) or "no GPU"
            confirm(f"Changing GPUs restarts `{instance.name}` (now {has}). Continue?", "A restart")
        done = act_on(
            client,
            [instance.id],
            lambda client, id: client.instances.resize(id, ResizeRequest(shape=shape)),
            instance.wanted,
            wait,
            timeout,
        )
        costs = {} if as_json else costs_by_id(client)
    tell_states(done, as_json, waited=wait)
    if not as_json:
        for each in done:
            remark(size_text(each, costs.get(each.id)))


def size_text(instance: "InstanceAnswer", cost: "CostAnswer | None") -> str:
    """A sentence with the size of an instance and its price."""
    shape = instance.shape
    parts = [
        f"{shape.vcpus} vCPU",
        f"{memory_text(shape.ram_bytes)} RAM",
        f"{memory_text(shape.disk_bytes)} disk",
        *filter(None, [cards_text(shape)]),
    ]
    price = price_text(cost)
    return f"`{instance.name}` has {', '.join(parts)}{f' and costs {price}' if price else ''}"


def changes_cards(client: "Client", instance: "InstanceAnswer", request: ShapeRequest) -> bool:
    """Whether the GPUs change. True in doubt: a question is better than an unexpected restart."""
    now = instance.shape
    gpu, gpus = request.gpu, request.gpus
    if request.name:
        named = next((each.shape for each in client.shapes.list() if each.name == request.name), None)
        if named is None:
            return False  # the server will refuse the name
        gpu, gpus = gpu or named.gpu, named.gpus if gpus is None else gpus
    if gpus is not None and gpus != now.gpus:
        return True
    return bool(gpu) and now.gpus > 0 and gpu.casefold() not in (now.gpu.casefold(), now.gpu_name.casefold())
