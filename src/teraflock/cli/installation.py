"""`tera up`, `down` and `purge`: what `make up`, `make down` and `make purge` call."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from teraflock import __version__
from teraflock.base.quantities import bytes_text
from teraflock.cli.confirm import confirm
from teraflock.cli.instance.show import write_facts
from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import called, emphasised, remark, write_json
from teraflock.cli.waiting import NotDone, phases
from teraflock.words.text import SIMULATED

if TYPE_CHECKING:
    from teraflock.app.house.down import Fallen
    from teraflock.app.house.up import Risen
    from teraflock.wire.host import HostAnswer

UP_HELP: Final = """Start the cloud on this machine: engine, server on loopback, base image, this machine as a host.

Again, it does nothing twice; cut off, it goes on where it was. Not root, or no engine: it says so and runs with the
simulated engine, marked SIMULATED in every answer.

\b
Examples:
  tera up
  TERA_ENGINE=simulated tera up
  TERA_LISTEN=127.0.0.1:9000 tera up
"""
DOWN_HELP: Final = """Stop the server, the instances, and the engine if it is our own.

Nothing is lost: `tera up` starts all of it again.

\b
Examples:
  tera down
  tera down --keep-guests
"""
PURGE_HELP: Final = """Remove all that `tera up` and the cloud made on this machine, and only that.

That is: all instances with their disks, our images, networks, firewall table and pool, the server's database, keys and
logs, and the SSH files for instances. An engine that was there before stays, and so do Debian's packages, prices and
plans.

\b
Examples:
  tera purge
  tera purge --yes
"""


@click.command(help=UP_HELP)
@json_option
def up(as_json: bool) -> None:
    from teraflock.app.house.locking import alone
    from teraflock.app.house.places import Places
    from teraflock.app.house.up import up as rise

    places = Places()
    with alone(places), phases() as line:
        risen = rise(places, line)
    if as_json:
        write_json(risen)
    else:
        _tell(risen)
    if risen.image != "ready":
        raise NotDone(
            f"The image `base` is {risen.image}: nothing can be launched from it yet",
            hint=f"`{called()} image build base` tries again; the log says more",
        )


def _tell(risen: "Risen") -> None:
    is_simulated = risen.engine.kind == "simulated"
    state = "runs already" if risen.was_up else "runs"
    mark = f" {SIMULATED}" if is_simulated else ""
    click.echo(emphasised(f"Teraflock {state} at {risen.server}{mark}"))
    write_facts(_facts(risen))
    if is_simulated:
        remark(f"\nNothing real is launched here: {risen.engine.told}")
        if risen.engine.repair:
            remark(f"For real instances: {risen.engine.repair}")
    _say_next(risen, is_simulated)


def _facts(risen: "Risen") -> Iterator[tuple[str, str]]:
    yield "engine", SIMULATED if risen.engine.kind == "simulated" else risen.engine.told
    for host in sorted(risen.hosts, key=lambda host: host.name)[:3]:
        yield "host", _host_text(host)
    if len(risen.hosts) > 3:
        yield "", f"and {len(risen.hosts) - 3} more"
    yield "image", f"base: {risen.image}"
    yield "key", risen.key_file
    yield "log", risen.log_file
    if risen.version != __version__:
        yield (
            "mind",
            f"version {risen.version} runs, {__version__} is installed: `make down up` brings it up to date",
        )
    if risen.other_server:
        yield (
            "mind",
            f"the commands here speak to {risen.other_server}, as before; set TERA_SERVER and TERA_KEY",
        )


def _host_text(host: "HostAnswer") -> str:
    cards = f"{len(host.gpus)}× {host.gpus[0].name}" if host.gpus else "no GPU"
    mark = f" {SIMULATED}" if host.simulated else ""
    return f"{host.name}: {host.vcpus} vCPU, {bytes_text(host.ram_bytes)}, {cards}{mark}"


def _say_next(risen: "Risen", is_simulated: bool) -> None:
    tera = called()
    if not risen.hosts:
        remark(f"\nNo host has reported yet: `{tera} doctor` says what is wrong")
    enter = f"{tera} exec first -- hostname" if is_simulated else f"{tera} ssh first"
    remark("\nNext:")
    for line in (f"{tera} launch --name first --wait", enter, f"{tera} ps"):
        remark(f"  {line}")


@click.command(help=DOWN_HELP)
@click.option("--keep-guests", is_flag=True, help="Instances run on; the next `up` finds them again.")
@json_option
def down(keep_guests: bool, as_json: bool) -> None:
    from teraflock.app.house.down import down as fall
    from teraflock.app.house.locking import alone
    from teraflock.app.house.places import Places

    places = Places()
    with alone(places), phases() as line:
        fallen = fall(places, line, guests_too=not keep_guests)
    if as_json:
        write_json(fallen)
        return
    for sentence in _down_sentences(fallen, keep_guests):
        click.echo(sentence)


def _down_sentences(fallen: "Fallen", keep_guests: bool) -> Iterator[str]:
    yield "The server is stopped" if fallen.server else "No server ran"
    if fallen.guests:
        many = fallen.guests > 1
        yield f"{fallen.guests} instance{'s' * many} stopped; `make up` starts {'them' if many else 'it'} again"
    elif keep_guests:
        yield "Instances run on"
    if fallen.daemon:
        yield "Our engine is stopped"
    elif fallen.foreign:
        yield "The engine was here before us and runs on"


@click.command(help=PURGE_HELP)
@yes_option
@json_option
def purge(yes: bool, as_json: bool) -> None:
    from teraflock.app.house.down import purge as remove
    from teraflock.app.house.locking import alone
    from teraflock.app.house.places import Places

    places = Places()
    if not any(folder.exists() for folder in (places.cloud, places.ssh, places.engine)):
        if as_json:
            write_json({"removed": False, "left": []})
        else:
            remark(f"Nothing was made here: there is no {places.cloud}")
        return
    if not yes:
        confirm(f"Remove all instances, disks, images and keys of {places.cloud}?", "Purging")
    with alone(places), phases() as line:
        left = remove(places, line)
    if as_json:
        write_json({"removed": True, "left": left})
        return
    click.echo(f"{places.cloud} is removed, and all that was made on the engine")
    for sentence in left:
        remark(sentence)
