"""`tera host add`, `remove`, `join`, `leave` and `serve`: hosts that join this installation."""

from typing import TYPE_CHECKING, Final

import click
import msgspec

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput
from teraflock.base.quantities import count_text
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected
from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import called, remark, tell, write_json
from teraflock.client.noun import pages
from teraflock.wire.host import InvitationRequest
from teraflock.words.host import join_command
from teraflock.words.text import age_text

if TYPE_CHECKING:
    from teraflock.app.joining.join import HostJoined
    from teraflock.client.client import Client

ADD_HELP: Final = """Print the command that lets another server join as a host. For operators.

Run the printed command on the other server, as root, within an hour. It works once. The server must reach the host on
port 8732, and the host must reach the server on port 8733 while it joins. docs/hosts.md describes every step.

Traffic between instances on different hosts is encrypted with WireGuard. If nobody else can reach the network
between the hosts, `--trusted-wire` sends it unencrypted. That is faster and needs no WireGuard.

\b
Examples:
  tera host add
  tera host add --name lab3 --address 192.168.10.7
  tera host add --trusted-wire
"""
JOIN_HELP: Final = """Let this machine join a server as a host. Run it as root. `tera host add` prints the command.

It installs LXD if needed, checks the NVIDIA driver, gets a certificate from the server, and starts the host program.
Safe to run again after an interruption. `tera host install-driver --dry-run` shows what `--install-driver` would do.

\b
Example:
  tera host join 'TOKEN@192.168.10.2:8733#FINGERPRINT'
"""
REMOVE_HELP: Final = """Remove a joined host that is drained and has no instances or volumes. Its certificate becomes
invalid.

`--lost` removes a host that will never return, with everything on it. It must not have answered for five minutes.
Instances there fail with the reason, and nothing is charged after the host was last seen. Volumes that have a copy on
another host are recovered from it. Instances with the restart policy `elsewhere` move to other hosts first: as long as
one waits for room, the host is not removed. Switch the machine off before you do this.

\b
Examples:
  tera host remove lab3
  tera host remove lab3 --lost
"""
LEAVE_HELP: Final = """Stop the host program here, and remove the links to other hosts, the key and the certificate.

Instances on this machine keep running, but the server no longer manages them. First remove the host on the server:
`tera host drain NAME`, then `tera host remove NAME`.
"""


@click.command(help=ADD_HELP)
@click.option("--name", default="", metavar="NAME", help="The name of the host. Default: its own host name.")
@click.option(
    "--address",
    default="",
    metavar="IP",
    help="The address at which this server reaches the host. Default: the one it joins from.",
)
@click.option("--trusted-wire", is_flag=True, help="Do not encrypt traffic between this host and others.")
@json_option
def add(name: str, address: str, trusted_wire: bool, as_json: bool) -> None:
    with connected() as client:
        made = client.hosts.invite(InvitationRequest(name=name, address=address, trusted_wire=trusted_wire))
    if as_json:
        write_json(made)
        return
    remark("On the new host, as root:\n")
    click.echo(join_command(made))
    left = age_text(SystemClock().now(), made.expires_at)
    remark(f"\nIt works once, within {left}. `{called()} host list` then shows the host")


@click.command(help=REMOVE_HELP)
@click.argument("name")
@click.option("--lost", is_flag=True, help="The host will never return. Give up everything that is on it.")
@yes_option
@json_option
def remove(name: str, lost: bool, yes: bool, as_json: bool) -> None:
    with connected() as client:
        if not yes:
            if lost:
                _write_losses(client, name)
            confirm(f"Remove the host `{name}`?", f"Removing the host `{name}`")
        done = client.hosts.remove(name, lost=lost)
    if as_json:
        write_json({"removed": name, **msgspec.structs.asdict(done)})
        return
    remark(f"Removed `{name}`. On that machine, `tera host leave` stops its host program")
    if lost:
        remark(
            f"Lost: {count_text(done.instances, 'instance')}, {count_text(done.volumes, 'volume')}."
            f" Recovered from copies: {count_text(done.volumes_recovered, 'volume')}"
        )


def _write_losses(client: "Client", name: str) -> None:
    """Say what is on the host, before the operator confirms."""
    host = client.hosts.get(name)
    found = pages(lambda after: client.operator.instances(host=host.id, after=after))
    since = age_text(host.seen_at, SystemClock().now())
    remark(
        f"`{host.name}` was last seen {since} ago. Lost with it: its volumes without a copy on another host, and"
        f" {count_text(len(found), 'instance')} with their disks and snapshots"
    )
    for each in found:
        remark(f"  {each.instance.name} ({each.organisation}/{each.project}): {each.instance.state}")
    remark("Switch the machine off first. If it still runs, its instances run on without being watched")


@click.command(help=JOIN_HELP)
@click.argument("word", metavar="TOKEN@SERVER#FINGERPRINT")
@click.option(
    "--address", default="", metavar="IP", help="The address at which the server reaches this machine."
)
@click.option(
    "--listen",
    default="0.0.0.0:8732",
    metavar="IP:PORT",
    show_default=True,
    help="Where the host program listens.",
)
@click.option(
    "--install-driver", is_flag=True, help="Install the NVIDIA driver if it is missing. Then reboot."
)
@click.option("--without-gpus", is_flag=True, help="Join although the NVIDIA driver does not answer.")
@click.option(
    "--simulate",
    default="",
    metavar="CARDS",
    help="Join with a simulated host, such as `1x8xV100`. For trying it out.",
)
@json_option
def join(
    word: str,
    address: str,
    listen: str,
    install_driver: bool,
    without_gpus: bool,
    simulate: str,
    as_json: bool,
) -> None:
    from teraflock.app.joining.config import HostPlaces
    from teraflock.app.joining.join import JoinWish, parse_ticket
    from teraflock.app.joining.join import join as act
    from teraflock.cli.waiting import phases

    wish = JoinWish(
        ticket=parse_ticket(word),
        address=address,
        listen=listen,
        without_gpus=without_gpus,
        install_driver=install_driver,
        simulated_hosts=simulate,
    )
    with phases() as line:
        joined = act(HostPlaces(), wish, SystemClock().now, line)
    if as_json:
        write_json(joined)
    else:
        _show(joined)


def _show(joined: "HostJoined") -> None:
    state = "is already a host" if joined.was_joined else "joined"
    click.echo(f"This machine {state}: {joined.name} at {joined.address}, host program on {joined.listen}")
    if joined.member:
        click.echo(f"It is the member `{joined.member}` of a cluster")
    remark("On the server, `tera host list` shows it within a minute")


@click.command(help=LEAVE_HELP)
@yes_option
@json_option
def leave(yes: bool, as_json: bool) -> None:
    from teraflock.app.joining import departure
    from teraflock.app.joining.config import HostPlaces, joined_config

    places = HostPlaces()
    try:
        name = joined_config(places).name
    except BadInput:  # damaged: this command is the way out
        name = "unknown"
    if not yes:
        confirm(f"Stop the host program of `{name}` and delete its key?", f"Leaving as `{name}`")
    departure.leave(places)
    tell({"left": name}, f"`{name}` is no longer a host here. Its instances, if any, keep running", as_json)


@click.command(help="Run the host program in the foreground. `tera host join` starts it in the background.")
def serve() -> None:
    from teraflock.app.joining.config import HostPlaces
    from teraflock.app.joining.serve import serve as run

    run(HostPlaces())
