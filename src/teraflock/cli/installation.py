"""`tera up`, `down` and `purge`, which `make up`, `make down` and `make purge` call."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from teraflock import __version__
from teraflock.base.quantities import bytes_text
from teraflock.cli.confirm import confirm
from teraflock.cli.facts import write_facts
from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import called, emphasised, remark, tell, write_json
from teraflock.cli.waiting import NotDone, phases
from teraflock.words.text import SIMULATED

if TYPE_CHECKING:
    from teraflock.app.installation.down import DownResult
    from teraflock.app.installation.up import UpResult
    from teraflock.wire.host import HostAnswer

UP_HELP: Final = """Start Teraflock on this machine: engine, server and image `base`, with this machine as a host.

The server listens on the loopback interface. The command is safe to run again, also after an interruption. Without
root or without an engine, it uses the simulated engine, and all output is marked SIMULATED.

\b
Examples:
  tera up
  TERA_ENGINE=simulated tera up
  TERA_LISTEN=127.0.0.1:9000 tera up
"""
DOWN_HELP: Final = """Stop the server, the instances, and the engine if `tera up` started it.

No data is lost: `tera up` starts everything again.

\b
Examples:
  tera down
  tera down --keep-guests
"""
PURGE_HELP: Final = """Remove everything that Teraflock created on this machine, and nothing else.

This removes all instances with their disks; images, networks, the firewall table and the storage pool; the server's
database, keys and logs; the SSH files for instances; and the host program of a machine that joined a server. An engine
that was installed before stays, and so do Debian packages, imported offers and plans.

\b
Examples:
  tera purge
  tera purge --yes
"""


@click.command(help=UP_HELP)
@json_option
def up(as_json: bool) -> None:
    from teraflock.app.installation.locking import alone
    from teraflock.app.installation.places import Places
    from teraflock.app.installation.up import up as rise

    places = Places()
    with alone(places), phases() as line:
        risen = rise(places, line)
    if as_json:
        write_json(risen)
    else:
        _show(risen)
    if risen.image != "ready":
        raise NotDone(
            f"The image `base` is {risen.image}, so no instance can be launched from it yet",
            hint=f"Run `{called()} image build base` to try again. The log has the reason",
        )


def _show(risen: "UpResult") -> None:
    is_simulated = risen.engine.kind == "simulated"
    state = "is already running" if risen.was_up else "is running"
    mark = f" {SIMULATED}" if is_simulated else ""
    click.echo(emphasised(f"Teraflock {state} at {risen.server}{mark}"))
    write_facts(_facts(risen))
    if is_simulated:
        remark(f"\nInstances here are simulated: {risen.engine.description}")
        if risen.engine.repair:
            remark(f"For real instances: {risen.engine.repair}")
    if risen.console:
        remark(f"\nConsole, signed in once within 15 minutes:\n  {risen.console}")
    _show_next_steps(risen, is_simulated)


def _facts(risen: "UpResult") -> Iterator[tuple[str, str]]:
    yield "engine", SIMULATED if risen.engine.kind == "simulated" else risen.engine.description
    for host in sorted(risen.hosts, key=lambda host: host.name)[:3]:
        yield "host", _host_text(host)
    if len(risen.hosts) > 3:
        yield "", f"and {len(risen.hosts) - 3} more"
    yield "image", f"base: {risen.image}"
    yield "key", risen.key_file
    yield "log", risen.log_file
    if risen.version != __version__:
        yield (
            "note",
            f"version {risen.version} is running, {__version__} is installed: update with `make down up`",
        )
    if risen.other_server:
        yield (
            "note",
            f"`tera` still uses {risen.other_server}; set TERA_SERVER and TERA_KEY to change that",
        )


def _host_text(host: "HostAnswer") -> str:
    cards = f"{len(host.gpus)}× {host.gpus[0].name}" if host.gpus else "no GPU"
    mark = f" {SIMULATED}" if host.simulated else ""
    return f"{host.name}: {host.vcpus} vCPU, {bytes_text(host.ram_bytes)}, {cards}{mark}"


def _show_next_steps(risen: "UpResult", is_simulated: bool) -> None:
    tera = called()
    if not risen.hosts:
        remark(f"\nNo host has reported yet. Run `{tera} doctor` to find out why")
    enter = f"{tera} exec first -- hostname" if is_simulated else f"{tera} ssh first"
    remark("\nNext:")
    for line in (f"{tera} launch --name first --wait", enter, f"{tera} ps"):
        remark(f"  {line}")


@click.command(help=DOWN_HELP)
@click.option("--keep-guests", is_flag=True, help="Leave instances running; the next `up` finds them.")
@json_option
def down(keep_guests: bool, as_json: bool) -> None:
    from teraflock.app.installation.down import down as fall
    from teraflock.app.installation.locking import alone
    from teraflock.app.installation.places import Places

    places = Places()
    with alone(places), phases() as line:
        fallen = fall(places, line, guests_too=not keep_guests)
    if as_json:
        write_json(fallen)
        return
    for sentence in _down_sentences(fallen, keep_guests):
        click.echo(sentence)


def _down_sentences(fallen: "DownResult", keep_guests: bool) -> Iterator[str]:
    yield "Server stopped" if fallen.server else "The server was not running"
    if fallen.guests:
        many = fallen.guests > 1
        yield f"{fallen.guests} instance{'s' * many} stopped; `make up` starts {'them' if many else 'it'} again"
    elif keep_guests:
        yield "Instances are still running"
    if fallen.daemon:
        yield "Engine stopped"
    elif fallen.foreign:
        yield "The engine is still running: it was not started by Teraflock"


@click.command(help=PURGE_HELP)
@yes_option
@json_option
def purge(yes: bool, as_json: bool) -> None:
    from teraflock.app.installation.down import purge as remove
    from teraflock.app.installation.locking import alone
    from teraflock.app.installation.places import Places
    from teraflock.app.joining.config import HostPlaces

    places = Places()
    ours = (places.cloud, places.ssh, places.engine, HostPlaces(places.home).folder)
    if not any(folder.exists() for folder in ours):
        tell({"removed": False, "left": []}, f"Nothing to remove: {places.home} has no cloud", as_json)
        return
    if not yes:
        confirm(f"Remove all instances, disks, images and keys of {places.home}?", "Purging")
    with alone(places), phases() as line:
        left = remove(places, line)
    if as_json:
        write_json({"removed": True, "left": left})
        return
    click.echo(f"Removed the cloud in {places.home} and everything created on the engine")
    for sentence in left:
        remark(sentence)
