"""`tera image`: list, build, create and delete images."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.base.names import check_name
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.deletion import delete_named
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option, wait_option, yes_option
from teraflock.cli.output import write_json
from teraflock.cli.table import write_list, write_table
from teraflock.cli.waiting import NotDone, wait
from teraflock.wire.image import ImageRequest
from teraflock.words.image import fields

if TYPE_CHECKING:
    from teraflock.client import Client

HELP: Final = """List, build and delete images. An image is built from a recipe, or created from an instance.

\b
Examples:
  tera image list
  tera image build pytorch
  tera image create my-setup --from web
  tera launch --image my-setup
"""
BUILD_SECONDS_MAX: Final = 3600.0
"""Frameworks with CUDA are gigabytes to download, install and pack."""
command = NamingGroup("command", help=HELP)


@command.command("list", help="List images, including those being built.")
@in_project
def list_images(client: "Client", as_json: bool) -> None:
    found = list(client.images.list())
    mark_simulated(client)
    empty = "No images yet. Build one with `tera image build base`"
    write_list(found, fields(SystemClock().now()), as_json=as_json, empty=empty)


@command.command(
    help="Build an image from a recipe: base, jupyter, pytorch or tensorflow. Does nothing if the image exists."
)
@click.argument("recipe")
@click.option("--name", help="The name of the image. [default: the recipe's name]")
@wait_option(default=True, seconds_max=BUILD_SECONDS_MAX)
@project_option
@json_option
def build(
    recipe: str, name: str | None, project: str | None, wait: bool, timeout: float, as_json: bool
) -> None:
    request = ImageRequest(name=check_name(name or recipe, "an image"), recipe=recipe)
    with connected(project) as client:
        _make(client, request, wait, timeout, as_json)


@command.command(help="Create an image from the disk of an instance.")
@click.argument("name")
@click.option("--from", "instance", required=True, metavar="INSTANCE", help="The instance.")
@wait_option(default=True, seconds_max=BUILD_SECONDS_MAX)
@project_option
@json_option
def create(name: str, instance: str, project: str | None, wait: bool, timeout: float, as_json: bool) -> None:
    request = ImageRequest(name=check_name(name, "an image"), instance=instance)
    with connected(project) as client:
        _make(client, request, wait, timeout, as_json)


@command.command(help="Delete an image. Instances that were launched from it stay.")
@click.argument("name")
@yes_option
@in_project
def delete(client: "Client", name: str, yes: bool, as_json: bool) -> None:
    delete_named(client.images, name, "image", yes=yes, as_json=as_json)


def _make(
    client: "Client", request: ImageRequest, is_waited: bool, seconds_max: float, as_json: bool
) -> None:
    image = client.images.create(request)
    mark_simulated(client)
    if is_waited:
        image = wait(
            lambda: client.images.get(image.id),
            lambda seen: seen.state in ("ready", "failed"),
            lambda seen: f"image {seen.name}: {seen.state}",
            seconds_max=seconds_max,
        )
    if as_json:
        write_json(image)
    else:
        write_table(fields(SystemClock().now()), [image])
    if image.state == "failed":
        raise NotDone(
            f"The image `{image.name}` could not be created: {image.problem or 'the reason is unknown'}",
            hint="Run the command again to retry",
        )
