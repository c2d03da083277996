"""`tera jupyter`: the address of an instance's Jupyter. On a rented machine it is reached through SSH."""

import socket
from typing import Final

import click

from teraflock.base.errors import BadInput, Refused
from teraflock.cli.connection import connected
from teraflock.cli.instance.ssh import become_ssh, reachable
from teraflock.cli.options import project_option
from teraflock.cli.output import remark

HERE: Final = "127.0.0.1"
PORT: Final = 8888
HELP: Final = """Open the Jupyter of an instance that was launched with `--access jupyter`.

On your own hosts, the command prints its address. On rented machines, Jupyter listens inside the machine only: the
command connects through SSH with the machine's own host key, prints an address on this computer, and keeps the
connection open until you press Ctrl-C.

\b
Examples:
  tera jupyter lab
  tera jupyter lab --port 9000
"""


@click.command(help=HELP)
@click.argument("name")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help=f"The port on this computer. Default: {PORT}, or a free one if it is in use.",
)
@click.option("-i", "--identity", type=click.Path(), metavar="FILE", help="The private SSH key to use.")
@project_option
def command(name: str, port: int | None, identity: str | None, project: str | None) -> None:
    with connected(project) as client:
        instance = client.instances.get(name)
    if instance.access != "jupyter":
        raise Refused(
            f"`{instance.name}` has no Jupyter: it was launched for {instance.access}",
            hint="Launch an instance with `--access jupyter`",
        )
    reachable(instance)
    if instance.jupyter is None:
        raise Refused(
            f"You may not use the Jupyter of `{instance.name}`",
            hint="Ask for a role that may log in to instances",
        )
    if not instance.jupyter.through_ssh:
        click.echo(instance.jupyter.url)
        return
    local = free_port(port)
    click.echo(instance.jupyter.url.replace(f"{HERE}:{PORT}", f"{HERE}:{local}", 1))
    remark("Connected until you press Ctrl-C")
    tunnel = f"{HERE}:{local}:{HERE}:{PORT}"
    become_ssh(instance, identity, ["-N", "-o", "ExitOnForwardFailure=yes", "-L", tunnel])


def free_port(wanted: int | None) -> int:
    """The wanted port, else the usual one, else any that is free now."""
    for port in (wanted,) if wanted else (PORT, 0):
        with socket.socket() as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind((HERE, port))
            except OSError:
                continue
            return int(attempt.getsockname()[1])
    raise BadInput(f"The port {wanted} is in use on this computer", hint="Choose another one with `--port`")
