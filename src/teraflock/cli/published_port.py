"""`tera publish` and `tera unpublish`: ports of a host that lead to ports of instances."""

from typing import TYPE_CHECKING, Final

import click

from teraflock.base.errors import NotFound
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.parse import port_number
from teraflock.cli.table import write_list
from teraflock.wire.published_port import PublishRequest
from teraflock.words.published_port import fields

if TYPE_CHECKING:
    from teraflock.client import Client

PUBLISH_HELP: Final = """Publish a TCP port of an instance on its host. Without PORT, list the published ports.

Connections to the host's port reach the instance if its security groups allow them, so open the port there, too.
Safe to run again.

\b
Examples:
  tera publish web 8080
  tera publish web 8080 --port 30080
  tera sg allow default --in --protocol tcp --port 8080 --from 0.0.0.0/0
  tera publish
"""
UNPUBLISH_HELP: Final = """Close a published port. Its connections are cut.

\b
Example:
  tera unpublish web 8080
"""


@click.command(help=PUBLISH_HELP)
@click.argument("instance", required=False)
@click.argument("guest_port", metavar="[PORT]", required=False)
@click.option("--port", metavar="N", help="The port of the host, 30000 to 32767. [default: a free one]")
@in_project
def publish(
    client: "Client", instance: str | None, guest_port: str | None, port: str | None, as_json: bool
) -> None:
    mark_simulated(client)
    if instance is None or guest_port is None:
        found = client.published_ports.list(instance=instance or "")
        empty = "No published ports yet. Publish one with `tera publish INSTANCE PORT`"
        write_list(found, fields(), as_json=as_json, empty=empty)
        return
    wanted = port_number(port, "--port") if port is not None else None
    request = PublishRequest(instance=instance, guest_port=port_number(guest_port, "PORT"), port=wanted)
    made = client.published_ports.publish(request)
    check = client.networks.check("internet", made.instance, port=str(made.guest_port))
    if as_json:
        write_json(made)
        return
    click.echo(f"{made.address}:{made.port} leads to port {made.guest_port} of {made.instance}")
    if not check.passes:
        remark(f"note: {check.sentence}\nhint: {check.hint}")


@click.command(help=UNPUBLISH_HELP)
@click.argument("instance")
@click.argument("guest_port", metavar="PORT")
@project_option
@json_option
def unpublish(instance: str, guest_port: str, project: str | None, as_json: bool) -> None:
    number = port_number(guest_port, "PORT")
    with connected(project) as client:
        found = [each for each in client.published_ports.list(instance=instance) if each.guest_port == number]
        if not found:
            raise NotFound(
                f"Port {number} of `{instance}` is not published",
                hint="`tera publish` lists the published ports",
            )
        client.published_ports.unpublish(found[0].id)
    tell(found[0], f"Port {number} of `{instance}` is no longer published", as_json)
