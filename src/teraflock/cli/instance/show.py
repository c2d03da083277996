"""`tera show`: show everything about one instance."""

from itertools import chain
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.clock import SystemClock
from teraflock.cli.connection import in_project
from teraflock.cli.facts import write_facts
from teraflock.cli.instance.costs import costs_by_id, with_cost
from teraflock.cli.options import organisation_option
from teraflock.cli.output import emphasised, write_json
from teraflock.words.instance import facts, state_text
from teraflock.words.published_port import ports_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.operator import LocatedInstance

HELP: Final = """Show one instance: its addresses, its GPUs, how to log in, and its problem if it has one.

\b
Examples:
  tera show web
  tera show web --json
  tera show web --acknowledge
  tera show web --all
"""


@click.command(help=HELP)
@click.argument("name")
@click.option("--acknowledge", is_flag=True, help="Clear the notice, for example about a lost disk.")
@click.option("--all", "is_all", is_flag=True, help="For operators: look in every organisation.")
@organisation_option
@in_project
def command(
    client: "Client", name: str, acknowledge: bool, is_all: bool, organisation: str, as_json: bool
) -> None:
    if is_all or organisation:
        _show_any(client.operator.instance(name, organisation=organisation), as_json)
        return
    instance = client.instances.acknowledge(name) if acknowledge else client.instances.get(name)
    costs = costs_by_id(client)
    published = client.published_ports.list(instance=instance.id)
    groups = client.security_groups.list(instance=instance.id) if instance.state != "gone" else ()
    if as_json:
        names = [each.name for each in groups]
        write_json({**with_cost(instance, costs), "published_ports": published, "security_groups": names})
        return
    click.echo(emphasised(f"{instance.name}: {state_text(instance)}"))
    more = (
        ("security groups", ", ".join(each.name for each in groups)),
        ("published", ports_text(published)),
    )
    write_facts(chain(facts(instance, SystemClock().now(), costs.get(instance.id)), more))


def _show_any(located: "LocatedInstance", as_json: bool) -> None:
    if as_json:
        write_json(located)
        return
    instance = located.instance
    click.echo(emphasised(f"{instance.name}: {state_text(instance)}"))
    more = [
        ("organisation", located.organisation),
        ("project", located.project),
        ("problem", located.problem),
    ]
    own = [each for each in facts(instance, SystemClock().now()) if each[0] != "problem"]
    write_facts([*more, *own])
