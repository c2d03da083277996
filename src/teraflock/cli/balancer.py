"""`tera lb`: load balancers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from teraflock.base.errors import BadInput
from teraflock.base.names import check_name
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.deletion import delete_named
from teraflock.cli.facts import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option, yes_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.parse import port_number
from teraflock.cli.table import write_list, write_table
from teraflock.wire.balancer import BalancerProtocolWord, BalancerRequest
from teraflock.words.balancer import backend_fields, backends_text, facts, fields, published_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.balancer import BalancerAnswer

PEM_BYTES_MAX: Final = 65_536
LABEL: Final = "label="
HELP: Final = """Manage load balancers: one address that spreads connections over several instances.

A balancer has an address and a name in the project's network. It checks its backends and uses only those that answer.
Backends see connections from the balancer's address, so their security groups must allow it. A balancer is a member of
the group `default`: instances in that group need no new rule.

\b
Examples:
  tera lb create web --port 80 --to web-1 --to web-2 --protocol http --check http:/health
  tera lb create api --port 443 --to-port 8080 --to label=app=api --certificate api.crt --key api.key --publish
  tera lb add web web-3
  tera lb show web
"""
CREATE_HELP: Final = """Create a load balancer.

`--to` names an instance, or a label that backends have: instances that get the label later become backends, too. With
`--publish`, a port of the host leads to it from outside the project.

With `--protocol http`, each request goes to the backend with the fewest connections, and `X-Forwarded-For` has the
address of the client. With `tcp`, whole connections do. A certificate makes the balancer speak TLS with clients; it
speaks plain TCP or HTTP with backends.

\b
Examples:
  tera lb create web --port 80 --to web-1 --to web-2
  tera lb create web --port 443 --to-port 8080 --to label=app=web --protocol http \\
      --check http:/health --certificate web.crt --key web.key --publish
"""
command = NamingGroup("command", help=HELP)


@command.command("list", help="List load balancers and their backends.")
@in_project
def list_balancers(client: "Client", as_json: bool) -> None:
    found = client.balancers.list()
    mark_simulated(client)
    empty = "No balancers yet. Create one with `tera lb create NAME --port 80 --to INSTANCE`"
    write_list(found, fields(), as_json=as_json, empty=empty)


@command.command(help="Show a load balancer: its backends and their state, connections and traffic.")
@click.argument("name")
@in_project
def show(client: "Client", name: str, as_json: bool) -> None:
    found = client.balancers.get(name)
    mark_simulated(client)
    if as_json:
        write_json(found)
        return
    click.echo(found.name)
    write_facts(facts(found))
    if found.backends:
        click.echo("")
        write_table(backend_fields(), found.backends)


@command.command(help=CREATE_HELP)
@click.argument("name")
@click.option("--port", required=True, metavar="N", help="The TCP port that it listens on.")
@click.option(
    "--to", "to", multiple=True, metavar="BACKEND", help="An instance, or `label=KEY=VALUE`. Repeat it."
)
@click.option("--to-port", metavar="N", help="The TCP port of the backends. [default: that of --port]")
@click.option(
    "--protocol", type=click.Choice(list(get_args(BalancerProtocolWord))), default="tcp", show_default=True
)
@click.option(
    "--check", default="tcp", show_default=True, metavar="CHECK", help="`tcp`, or `http:` and a path."
)
@click.option(
    "--interval",
    type=int,
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="Remove a backend after at most this time without an answer.",
)
@click.option("--certificate", metavar="FILE", help="A certificate in PEM format, with those of its issuers.")
@click.option("--key", metavar="FILE", help="The key of the certificate, without a password.")
@click.option("--publish", is_flag=True, help="Publish it on a port of the host.")
@click.option(
    "--publish-port", metavar="N", help="The port of the host, 30000 to 32767. [default: a free one]"
)
@project_option
@json_option
def create(name: str, project: str | None, as_json: bool, **words: Any) -> None:
    request = _request(check_name(name, "a balancer"), **words)
    with connected(project) as client:
        mark_simulated(client)
        made = client.balancers.create(request)
    if as_json:
        write_json(made)
        return
    click.echo(f"{made.address}:{made.port} ({made.dns_name}) leads to: {backends_text(made)}")
    if made.published_port:
        click.echo(f"{published_text(made)} leads to it from outside")
    remark(f"See the state of its backends with `tera lb show {made.name}`")


@command.command(help="Add instances to a load balancer. Open connections go on.")
@click.argument("name")
@click.argument("instances", nargs=-1, required=True)
@in_project
def add(client: "Client", name: str, instances: tuple[str, ...], as_json: bool) -> None:
    _tell(client.balancers.add(name, instances), as_json)


@command.command(help="Remove instances from a load balancer. Their open connections go on until they end.")
@click.argument("name")
@click.argument("instances", nargs=-1, required=True)
@in_project
def remove(client: "Client", name: str, instances: tuple[str, ...], as_json: bool) -> None:
    _tell(client.balancers.remove(name, instances), as_json)


@command.command(help="Delete a load balancer. Its connections are cut; its instances are not touched.")
@click.argument("name")
@yes_option
@in_project
def delete(client: "Client", name: str, yes: bool, as_json: bool) -> None:
    delete_named(client.balancers, name, "balancer", yes=yes, as_json=as_json)


def _request(
    name: str,
    *,
    port: str,
    to: tuple[str, ...],
    to_port: str | None,
    protocol: BalancerProtocolWord,
    check: str,
    interval: int,
    certificate: str | None,
    key: str | None,
    publish: bool,
    publish_port: str | None,
) -> BalancerRequest:
    labels = [each.removeprefix(LABEL) for each in to if each.startswith(LABEL)]
    if len(labels) > 1:
        raise BadInput(
            "A balancer has one label", hint="Give one `--to label=KEY=VALUE`, and instances by name"
        )
    return BalancerRequest(
        name=name,
        port=port_number(port, "--port"),
        target_port=port_number(to_port, "--to-port") if to_port else None,
        instances=tuple(each for each in to if not each.startswith(LABEL)),
        label=labels[0] if labels else "",
        protocol=protocol,
        check=check,
        check_seconds=interval,
        certificate=_pem(certificate),
        key=_pem(key),
        publish=publish or publish_port is not None,
        published_port=port_number(publish_port, "--publish-port") if publish_port else None,
    )


def _pem(path: str | None) -> str:
    if path is None:
        return ""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise BadInput(f"Could not read `{path}`: {error.strerror}", hint="Check the path") from None
    if len(content) > PEM_BYTES_MAX or not content.isascii() or not content:
        raise BadInput(
            f"`{path}` is not in PEM format", hint="Such a file is text with a line `-----BEGIN …-----`"
        )
    return content.decode("ascii")


def _tell(balancer: "BalancerAnswer", as_json: bool) -> None:
    tell(balancer, f"`{balancer.name}` leads to: {backends_text(balancer)}", as_json)
