"""`tera network`: which connections pass, and who can reach whom."""

from typing import Final

import click

from teraflock.cli.connection import connected, mark_simulated
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option
from teraflock.cli.output import remark, write_json
from teraflock.cli.table import write_list
from teraflock.words.network import deciding_text, fields, picture

HELP: Final = """Check which connections pass, and draw who can reach whom.

\b
Examples:
  tera network check --from internet --to web --port 22
  tera network check --from web --to db --port 5432
  tera network graph --svg > network.svg
"""
CHECK_HELP: Final = """Say whether a connection would pass, and which rules decide. Nothing is sent.

An end is an instance, `internet`, or an IPv4 address. The exit code is 0 if the connection passes and 1 if it is
stopped.

\b
Examples:
  tera network check --from internet --to web --port 22
  tera network check --from 203.0.113.7 --to web --port 443
  tera network check --from web --to db --protocol udp --port 53
  tera network check --from web --to internet --protocol icmp
"""
STOPPED: Final = 1


@click.group(cls=NamingGroup, help=HELP)
def command() -> None:
    pass


@command.command(help=CHECK_HELP)
@click.option("--from", "source", required=True, metavar="END", help="Where the connection starts.")
@click.option("--to", "target", required=True, metavar="END", help="Where it goes.")
@click.option(
    "--protocol",
    type=click.Choice(["tcp", "udp", "icmp"]),
    default="tcp",
    show_default=True,
    help="The protocol.",
)
@click.option("--port", default="", metavar="N", help="The port of the target. Not for ICMP.")
@project_option
@json_option
def check(source: str, target: str, protocol: str, port: str, project: str | None, as_json: bool) -> None:
    with connected(project) as client:
        found = client.networks.check(source, target, protocol=protocol, port=port)
        mark_simulated(client)
    if as_json:
        write_json(found)
    else:
        click.echo(found.sentence)
        for title, rule in ((f"out of {source}", found.leaving), (f"into {target}", found.entering)):
            if rule:
                click.echo(f"  {title}: {deciding_text(rule)}")
        if found.hint:
            remark(f"\nhint: {found.hint}")
    if not found.passes:
        raise SystemExit(STOPPED)


@command.command(help="List which instances can reach each other and the internet. `--svg` draws it.")
@click.option("--svg", "is_svg", is_flag=True, help="Print a picture as SVG.")
@project_option
@json_option
def graph(is_svg: bool, project: str | None, as_json: bool) -> None:
    with connected(project) as client:
        found = client.networks.graph()
        mark_simulated(client)
    if as_json:
        write_json(found)
    elif is_svg:
        click.echo(picture(found), nl=False)
    else:
        empty = "No instance can reach anything. Launch one with `tera launch`"
        write_list(found.connections, fields(), as_json=False, empty=empty)
