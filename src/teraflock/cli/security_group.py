"""`tera sg`: security groups, the firewall of instances."""

from typing import TYPE_CHECKING, Any, Final, cast, get_args

import click

from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput, NotFound
from teraflock.base.names import check_name
from teraflock.cli.connection import connected, in_project, mark_simulated
from teraflock.cli.deletion import delete_named
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option, with_options, yes_option
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.table import write_list, write_table
from teraflock.wire.security_group import DirectionWord, ProtocolWord, RuleRequest
from teraflock.words.security_group import fields, members_text, rule_fields, rule_text

if TYPE_CHECKING:
    from teraflock.client import Client
    from teraflock.wire.security_group import RuleAnswer, SecurityGroupAnswer

HELP: Final = """Manage security groups: what may reach instances, and what they may reach.

A group has rules that allow new connections. Replies always pass. An instance can be in several groups; a connection
passes if any of them allows it. A new group lets nothing in and everything out.

Every project has the group `default`, which new instances join: it allows SSH and Jupyter from anywhere, and everything
between its members. Changes apply within two seconds, without a restart. Connections that you revoke are cut.

\b
Examples:
  tera sg create web
  tera sg allow web --in --protocol tcp --port 80 --from 0.0.0.0/0
  tera sg allow db --in --protocol tcp --port 5432 --from sg:web
  tera sg attach web frontend
  tera launch --name api --security-group web --security-group default
"""
ALLOW_HELP: Final = """Add a rule that allows connections. Safe to run again.

\b
Examples:
  tera sg allow web --in --protocol tcp --port 80-90 --from 203.0.113.0/24
  tera sg allow web --in --protocol icmp --from 0.0.0.0/0
  tera sg allow jobs --out --protocol tcp --port 443 --to 0.0.0.0/0
"""
REVOKE_HELP: Final = """Remove a rule. Write it as with `tera sg allow`, or give its id from `tera sg show`.

Connections that no other rule allows are cut.

\b
Examples:
  tera sg revoke web --in --protocol tcp --port 80-90 --from 203.0.113.0/24
  tera sg revoke web --rule rul_0123456789abcdef
"""


rule_options = with_options(
    click.option("--in", "is_in", is_flag=True, help="For connections to the instances."),
    click.option("--out", "is_out", is_flag=True, help="For connections from the instances."),
    click.option(
        "--protocol",
        type=click.Choice(list(get_args(ProtocolWord))),
        default="any",
        show_default=True,
    ),
    click.option("--port", default="", metavar="N[-M]", help="A port or a range. [default: all]"),
    click.option("--from", "source", metavar="PEER", help="With --in: a network, an address or `sg:NAME`."),
    click.option("--to", "target", metavar="PEER", help="With --out: a network, an address or `sg:NAME`."),
)
command = NamingGroup("command", help=HELP)


@command.command("list", help="List security groups, with their members.")
@click.option("--instance", default="", metavar="NAME", help="Only the groups of this instance.")
@in_project
def list_groups(client: "Client", instance: str, as_json: bool) -> None:
    found = client.security_groups.list(instance=instance)
    mark_simulated(client)
    empty = f"`{instance}` is in no security group: it runs on a rented machine"
    write_list(found, fields(SystemClock().now()), as_json=as_json, empty=empty)


@command.command(help="Show the rules and members of a security group.")
@click.argument("name")
@in_project
def show(client: "Client", name: str, as_json: bool) -> None:
    group = client.security_groups.get(name)
    mark_simulated(client)
    _write_group(group, as_json)


@command.command(help="Create a security group. It lets nothing in and everything out until you add rules.")
@click.argument("name")
@in_project
def create(client: "Client", name: str, as_json: bool) -> None:
    group = client.security_groups.create(check_name(name, "a security group"))
    tell(
        group, f"Created security group `{group.name}`. Add rules with `tera sg allow {group.name}`", as_json
    )


@command.command(help="Delete a security group that is not in use.")
@click.argument("name")
@yes_option
@in_project
def delete(client: "Client", name: str, yes: bool, as_json: bool) -> None:
    delete_named(client.security_groups, name, "security group", yes=yes, as_json=as_json)


@command.command(help=ALLOW_HELP)
@click.argument("name")
@rule_options
@project_option
@json_option
def allow(name: str, project: str | None, as_json: bool, **words: Any) -> None:
    request = rule_request(**words)
    with connected(project) as client:
        rule = client.security_groups.allow(name, request)
        others = client.security_groups.get(name).rules if request.direction == "out" else ()
    if as_json:
        write_json(rule)
        return
    remark(f"`{name}` allows: {rule_text(rule)}")
    if any(each.protocol == "any" and each.peer == "0.0.0.0/0" and each.id != rule.id for each in others):
        remark(
            f"note: `{name}` also allows everything out. To limit it:"
            f" `tera sg revoke {name} --out --to 0.0.0.0/0`"
        )


@command.command(help=REVOKE_HELP)
@click.argument("name")
@click.option("--rule", "rule_id", default="", metavar="ID", help="The id of the rule.")
@rule_options
@project_option
@json_option
def revoke(name: str, rule_id: str, project: str | None, as_json: bool, **words: Any) -> None:
    given = any(words[each] for each in ("is_in", "is_out", "port", "source", "target"))
    if rule_id and given:
        raise BadInput("`--rule` already names the rule", hint="Leave out the other options")
    request = None if rule_id else rule_request(**words)
    with connected(project) as client:
        group = client.security_groups.get(name)
        rule = _found(group, rule_id, request)
        client.security_groups.revoke(group.id, rule.id)
    tell(rule, f"`{group.name}` no longer allows: {rule_text(rule)}", as_json)


@command.command(help="Put an instance into a security group. It is not restarted.")
@click.argument("name")
@click.argument("instance")
@in_project
def attach(client: "Client", name: str, instance: str, as_json: bool) -> None:
    group = client.security_groups.attach(name, instance)
    _tell_members(group, as_json)


@command.command(help="Take an instance out of a security group. It keeps at least one.")
@click.argument("name")
@click.argument("instance")
@in_project
def detach(client: "Client", name: str, instance: str, as_json: bool) -> None:
    group = client.security_groups.detach(name, instance)
    _tell_members(group, as_json)


def rule_request(
    *, is_in: bool, is_out: bool, protocol: str, port: str, source: str | None, target: str | None
) -> RuleRequest:
    direction = direction_of(is_in=is_in, is_out=is_out)
    peer, wrong, right = (source, target, "--from") if is_in else (target, source, "--to")
    if wrong is not None:
        raise BadInput(
            f"A rule with `{'--in' if is_in else '--out'}` takes `{right}`", hint=f"Use `{right} PEER`"
        )
    if not peer:
        raise BadInput(
            f"A rule needs `{right}`",
            hint=f"Write `{right} 0.0.0.0/0` for every address, or `{right} sg:NAME`",
        )
    return RuleRequest(direction=direction, protocol=cast("ProtocolWord", protocol), ports=port, peer=peer)


def direction_of(*, is_in: bool, is_out: bool) -> DirectionWord:
    if is_in and is_out:
        raise BadInput(
            "A rule has one direction", hint="Give `--in` or `--out`, and add a second rule for the other"
        )
    if not (is_in or is_out):
        raise BadInput("A rule needs a direction", hint="Add `--in` or `--out`")
    return "in" if is_in else "out"


def _found(group: "SecurityGroupAnswer", rule_id: str, request: RuleRequest | None) -> "RuleAnswer":
    for rule in group.rules:
        if rule_id == rule.id or (request is not None and _is_same(rule, request)):
            return rule
    raise NotFound(
        f"The security group `{group.name}` has no such rule",
        hint=f"`tera sg show {group.name}` lists its rules",
    )


def _is_same(rule: "RuleAnswer", request: RuleRequest) -> bool:
    peer = request.peer
    as_network = peer if "/" in peer or peer.startswith("sg:") else f"{peer}/32"
    first, _, last = request.ports.partition("-")
    ports = first if first == last else request.ports
    return (rule.direction, rule.protocol, rule.ports, rule.peer) == (
        request.direction, request.protocol, ports, as_network,
    )  # fmt: skip


def _write_group(group: "SecurityGroupAnswer", as_json: bool) -> None:
    if as_json:
        write_json(group)
        return
    click.echo(f"{group.name}  {members_text(group)}\n")
    write_table(rule_fields(), group.rules)


def _tell_members(group: "SecurityGroupAnswer", as_json: bool) -> None:
    tell(group, f"`{group.name}`: {members_text(group)}", as_json)
