"""`tera host upgrade`: the server's version on joined hosts, one after the other."""

from typing import Final

import click

from teraflock.base.errors import Refused, TeraflockError
from teraflock.cli.connection import connected
from teraflock.cli.options import json_option
from teraflock.cli.output import called, remark, write_json
from teraflock.wire.host import HostUpgradeAnswer

HELP: Final = """Install the server's version on joined hosts, and restart their host programs. For operators.

First upgrade the server. It then refuses hosts of another version, whose instances keep running. This command sends
the server's program to each host, one after the other. The host unpacks it next to the installed one, tries it with its
own Python, and restarts its host program with it. Without a name, all joined hosts are upgraded.

The command stops at the first host that fails. Run it again to continue: hosts that have the version are skipped.

\b
Examples:
  tera host upgrade
  tera host upgrade lab2 lab3
"""
JOINED: Final = "joined"


@click.command(help=HELP)
@click.argument("names", metavar="[HOST]...", nargs=-1)
@json_option
def upgrade(names: tuple[str, ...], as_json: bool) -> None:
    done: list[HostUpgradeAnswer] = []
    with connected() as client:
        wanted = names or tuple(each.name for each in client.sites.list() if each.kind == JOINED)
        if not wanted:
            raise Refused("No host has joined this server", hint=f"Add one: `{called()} host add`")
        for name in wanted:
            try:
                done.append(client.hosts.upgrade(name))
            except TeraflockError as error:
                raise _stopped(error, name, done, wanted) from None
            if not as_json:
                click.echo(_line(done[-1]))
    if as_json:
        write_json(done)


def _line(done: HostUpgradeAnswer) -> str:
    if done.before == done.version:
        return f"{done.host}: already has {done.version}"
    return f"{done.host}: {done.before} → {done.version}"


def _stopped(
    error: TeraflockError, name: str, done: list[HostUpgradeAnswer], wanted: tuple[str, ...]
) -> TeraflockError:
    left = len(wanted) - len(done) - 1
    if left:
        remark(f"Stopped at `{name}`. Not upgraded after it: {left}")
    return error
