"""`tera acl`: network ACLs, numbered rules at the border of a subnet."""

from typing import TYPE_CHECKING, Any, Final

import click

from teraflock.base.errors import BadInput
from teraflock.base.filling import filled
from teraflock.base.names import check_name
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.deletion import delete_named
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option, yes_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.security_group import direction_of, rule_options, rule_request
from teraflock.cli.table import write_list, write_table
from teraflock.wire.acl import AclRuleRequest
from teraflock.words.acl import fields, rule_fields

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.acl import AclAnswer, ActionWord

HELP: Final = """Manage network ACLs: numbered rules for what crosses the border of a subnet.

The ACL of a subnet looks at every packet between its instances and the outside. The lowest number that matches decides;
what no rule matches is dropped. An ACL has no memory, so replies need a rule, too. It does not see traffic
inside the subnet. Most projects need only security groups (`tera sg`).

\b
Examples:
  tera acl create border
  tera acl deny border 10 --in --from 203.0.113.0/24
  tera acl allow border 20 --in --protocol tcp --from 0.0.0.0/0
  tera acl allow border 20 --out --to 0.0.0.0/0
  tera acl attach border
  tera acl attach border --network backend --subnet db
"""
_network_option = click.option(
    "--network", default="default", show_default=True, metavar="NAME", help="The network of the subnet."
)
_subnet_option = click.option(
    "--subnet", default="default", show_default=True, metavar="NAME", help="The subnet."
)
command = NamingGroup("command", help=HELP)


@command.command("list", help="List network ACLs.")
@in_project
def list_acls(client: "Client", as_json: bool) -> None:
    found = client.acls.list()
    mark_simulated(client)
    empty = "No ACLs yet. Create one with `tera acl create NAME`"
    write_list(found, fields(), as_json=as_json, empty=empty)


@command.command(help="Show the rules of an ACL.")
@click.argument("name")
@in_project
def show(client: "Client", name: str, as_json: bool) -> None:
    acl = client.acls.get(name)
    mark_simulated(client)
    _write(acl, as_json)


@command.command(help="Create an ACL. It has no rules, and no effect until you attach it.")
@click.argument("name")
@in_project
def create(client: "Client", name: str, as_json: bool) -> None:
    acl = client.acls.create(check_name(name, "an ACL"))
    tell(acl, f"Created ACL `{acl.name}`. Add rules with `tera acl allow {acl.name} NUMBER`", as_json)


@command.command(help="Delete an ACL that is not attached.")
@click.argument("name")
@yes_option
@in_project
def delete(client: "Client", name: str, yes: bool, as_json: bool) -> None:
    delete_named(client.acls, name, "ACL", yes=yes, as_json=as_json)


@command.command(help="Add a rule that lets packets pass.")
@click.argument("name")
@click.argument("number")
@rule_options
@project_option
@json_option
def allow(name: str, number: str, project: str | None, as_json: bool, **words: Any) -> None:
    _add(name, number, "allow", project, as_json, words)


@command.command(help="Add a rule that drops packets.")
@click.argument("name")
@click.argument("number")
@rule_options
@project_option
@json_option
def deny(name: str, number: str, project: str | None, as_json: bool, **words: Any) -> None:
    _add(name, number, "deny", project, as_json, words)


@command.command(help="Remove a rule by its direction and number.")
@click.argument("name")
@click.argument("number")
@click.option("--in", "is_in", is_flag=True, help="A rule for packets to the instances.")
@click.option("--out", "is_out", is_flag=True, help="A rule for packets from the instances.")
@project_option
@json_option
def remove(name: str, number: str, is_in: bool, is_out: bool, project: str | None, as_json: bool) -> None:
    direction = direction_of(is_in=is_in, is_out=is_out)
    with connected(project) as client:
        acl = client.acls.remove(name, direction, _number(number))
    tell(acl, f"Removed rule {number} from `{acl.name}`", as_json)


@command.command(help="Attach an ACL to a subnet. It replaces the current one.")
@click.argument("name")
@_network_option
@_subnet_option
@in_project
def attach(client: "Client", name: str, network: str, subnet: str, as_json: bool) -> None:
    acl = client.acls.attach(name, network=network, subnet=subnet)
    tell(acl, f"`{acl.name}` guards the subnet `{network}/{subnet}`", as_json)
    ways = {each.direction for each in acl.rules}
    if not as_json and not ways:
        remark("note: it has no rules. All packets are dropped")
    elif not as_json and ways != {"in", "out"}:
        remark(
            "note: it has rules for one direction only. Packets in the other are dropped, replies included"
        )


@command.command(help="Detach the ACL of a subnet.")
@click.argument("name")
@_network_option
@_subnet_option
@in_project
def detach(client: "Client", name: str, network: str, subnet: str, as_json: bool) -> None:
    acl = client.acls.detach(name, network=network, subnet=subnet)
    tell(acl, f"`{acl.name}` no longer guards the subnet `{network}/{subnet}`", as_json)


def _add(
    name: str, number: str, action: "ActionWord", project: str | None, as_json: bool, words: dict[str, Any]
) -> None:
    rule = rule_request(**words)
    request = filled(AclRuleRequest, rule, number=_number(number), action=action)
    with connected(project) as client:
        acl = client.acls.add(name, request)
    tell(acl, f"Added rule {number} to `{acl.name}`", as_json)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise BadInput(f"`{text[:40]}` cannot be the number of a rule", hint="Use 1 to 32766")
    return int(text)


def _write(acl: "AclAnswer", as_json: bool) -> None:
    if as_json:
        write_json(acl)
        return
    click.echo(f"{acl.name}  {'guards ' + ', '.join(acl.subnets) if acl.attached else 'not attached'}\n")
    write_table(rule_fields(), acl.rules)
