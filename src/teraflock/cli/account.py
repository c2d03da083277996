"""`tera account`: accounts at public clouds."""

import sys
from typing import Final

import click

from teraflock import __version__
from teraflock.base.clock import SystemClock
from teraflock.base.errors import BadInput, TeraflockError
from teraflock.base.names import check_place
from teraflock.catalog.renting import check_provider
from teraflock.cli.confirm import confirm
from teraflock.cli.connection import connected
from teraflock.cli.facts import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import emphasised, remark, tell, write_json
from teraflock.cli.parse import parse_pairs
from teraflock.cli.parse_money import parse_amount
from teraflock.cli.table import write_list, write_table
from teraflock.instance.account.rules import SECRET_CHARACTERS_MAX
from teraflock.wire.account import AccountCheckAnswer, AccountRequest, OrphanAnswer
from teraflock.wire.site import SiteAnswer
from teraflock.words.account import FIELDS, ORPHAN_FIELDS, facts

HELP: Final = """Add, check and share accounts at public clouds. For operators.

An account holds the credentials and the spending limits of one provider. Adding one makes a site with the same name;
launches with `--site NAME` or `--provider PROVIDER` rent machines there. Nobody may use an account until you share it
with a project. Credentials are stored encrypted and never shown again.

\b
Examples:
  tera account add lambda --name lambda-main --key-file lambda.key --limit 500
  tera account check lambda-main
  tera account share lambda-main --project vision --limit 100
  tera launch --provider lambda --type gpu_1x_a10
  tera account show lambda-main
  tera account sweep lambda-main
"""
F_KEY: Final = "The credentials: a key, `ID:SECRET`, or JSON, as docs/clouds.md says for each provider."

limit_option = click.option(
    "--limit", metavar="AMOUNT", help="The most that its machines may cost per month. [default: no limit]"
)
command = NamingGroup("command", help=HELP)


@command.command("list", help="List accounts, and what their machines cost this month.")
@json_option
def list_accounts(as_json: bool) -> None:
    with connected() as client:
        found = client.accounts.list()
    write_list(found, FIELDS, as_json=as_json, empty="There are no accounts; see `tera account add --help`")


@command.command(help="Show one account: state, limits, projects, and orphans at the provider.")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    with connected() as client:
        account = client.accounts.get(name)
        try:
            orphans, problem = client.accounts.orphans(name), ""
        except TeraflockError as error:
            orphans, problem = (), error.sentence
    if as_json:
        write_json({"account": account, "orphans": orphans, "orphans_problem": problem})
        return
    click.echo(emphasised(f"{account.name}: {account.state}"))
    write_facts(facts(account, SystemClock().now()))
    if problem:
        remark(f"\nThe provider could not be asked for orphans: {problem}")
    elif orphans:
        _write_orphans(orphans)
        remark(f"\nThese belong to no instance. `tera account sweep {name}` deletes them")


@command.command(
    help="Add an account and check its credentials.\n\nWithout an option for the key, `tera` asks for it, or reads"
    " it from stdin."
)
@click.argument("provider")
@click.option("--name", metavar="NAME", help="The name of the account and its site. [default: the provider]")
@click.option("--key-file", type=click.Path(), metavar="FILE", help=F_KEY)
@click.option(
    "--key-from",
    default="",
    metavar="REF",
    help="Do not store the credentials. The server reads them from `env:VARIABLE` or `file:/PATH`.",
)
@click.option(
    "--base-url", default="", metavar="URL", help="The address of the API. [default: the provider's]"
)
@click.option(
    "--set", "options", multiple=True, metavar="K=V", help="An option of the driver. Can be repeated."
)
@limit_option
@click.option(
    "--currency",
    default="",
    metavar="CODE",
    help="The currency of limits. [default: what the provider charges in]",
)
@json_option
def add(
    provider: str,
    name: str | None,
    key_file: str | None,
    key_from: str,
    base_url: str,
    options: tuple[str, ...],
    limit: str | None,
    currency: str,
    as_json: bool,
) -> None:

    check_provider(provider)
    given = parse_pairs(options, "--set")
    request = AccountRequest(
        name=check_place(name or provider, "an account"),
        provider=provider,
        secret=None if key_from else read_secret(key_file),
        secret_from=key_from,
        options={**given, "base_url": base_url} if base_url else given,
        currency=currency,
        limit_micros=parse_amount(limit, at_least=1) if limit else None,
    )
    with connected() as client:
        made = client.accounts.add(request)
        checked = client.accounts.check(made.name)
    if as_json:
        write_json({"account": made, "check": checked})
        return
    remark(f"Added `{made.name}`. Share it with `tera account share {made.name} --project NAME`")
    _write_check(checked)


@command.command(
    help="Make one read-only call and explain what is wrong. The exit code is 1 if anything is wrong."
)
@click.argument("name")
@click.option(
    "--live-report", is_flag=True, help="Also print what you can send us about this cloud. No credentials."
)
@json_option
def check(name: str, live_report: bool, as_json: bool) -> None:
    with connected() as client:
        found = client.accounts.check(name)
        site = client.sites.get(name) if live_report else None
    if as_json:
        write_json({"check": found, "report": _report(found, site)} if site else found)
    else:
        _write_check(found)
        if site:
            click.echo("\n".join(f"{key}: {value}" for key, value in _report(found, site).items()))
    if not found.ok:
        raise SystemExit(1)


@command.command(help="Replace the stored credentials of an account.")
@click.argument("name")
@click.option("--key-file", type=click.Path(), metavar="FILE", help=F_KEY)
@json_option
def key(name: str, key_file: str | None, as_json: bool) -> None:
    secret = read_secret(key_file)
    with connected() as client:
        client.accounts.set_key(name, secret)
        checked = client.accounts.check(name)
    if as_json:
        write_json(checked)
    else:
        _write_check(checked)


@command.command(help="Set the most that the machines of an account may cost per month.")
@click.argument("name")
@click.argument("amount", metavar="AMOUNT|none")
@json_option
def limit(name: str, amount: str, as_json: bool) -> None:
    micros = None if amount == "none" else parse_amount(amount, at_least=1)
    with connected() as client:
        account = client.accounts.set_limit(name, micros)
    tell(
        account, f"`{name}` has {'no limit' if micros is None else f'a limit of {amount} per month'}", as_json
    )


@command.command(help="Let a project rent machines with an account. This spends your money there.")
@click.argument("name")
@click.option("--project", required=True, metavar="NAME", help="The project, as `ORG:PROJECT` or its id.")
@limit_option
@click.option("--remove", is_flag=True, help="Stop sharing. Machines that run keep running.")
@json_option
def share(name: str, project: str, limit: str | None, remove: bool, as_json: bool) -> None:
    micros = parse_amount(limit, at_least=1) if limit else None
    if remove and limit:
        raise BadInput("`--remove` and `--limit` cannot be combined", hint="Leave one of them out")
    with connected() as client:
        account = client.accounts.share(name, project, limit_micros=micros, may=not remove)
    tell(account, f"`{project}` may {'no longer ' if remove else ''}rent machines with `{name}`", as_json)


@command.command(
    help="Delete machines and keys at the provider that have our mark and belong to no instance."
)
@click.argument("name")
@yes_option
@json_option
def sweep(name: str, yes: bool, as_json: bool) -> None:
    with connected() as client:
        found = client.accounts.orphans(name)
        if found and not yes:
            _write_orphans(found)
            confirm(f"Delete these {len(found)} at the provider?", "Deleting orphans")
        deleted = client.accounts.sweep(name) if found else ()
    if as_json:
        write_json(deleted)
    elif deleted:
        _write_orphans(deleted)
        remark(f"\nDeleted: {len(deleted)}")
    else:
        remark(f"`{name}` has no orphans")


@command.command(help="Remove an account that has no machines.")
@click.argument("name")
@click.option(
    "--force", is_flag=True, help="Do not ask the provider for machines. What runs there keeps running."
)
@yes_option
@json_option
def remove(name: str, force: bool, yes: bool, as_json: bool) -> None:
    if not yes:
        confirm(f"Remove the account `{name}`?", f"Removing the account `{name}`")
    with connected() as client:
        client.accounts.remove(name, force=force)
    tell({"removed": name}, f"Removed `{name}`", as_json)


def read_secret(path: str | None) -> str:
    """Read credentials from a file, from the terminal without showing them, or from stdin."""
    if path is None and sys.stdin.isatty():
        return str(click.prompt("Key", hide_input=True, err=True))
    try:
        with click.open_file(path or "-", "rb") as file:
            content: bytes = file.read(SECRET_CHARACTERS_MAX + 1)
    except OSError as error:
        raise BadInput(f"`{path}` cannot be read: {error.strerror}", hint="Check its name") from None
    try:
        secret = content.decode("utf-8").strip()
    except UnicodeDecodeError:
        secret = ""
    if not secret or len(content) > SECRET_CHARACTERS_MAX:
        raise BadInput(
            "No credentials were given, or they are not text", hint="Use `--key-file FILE`, or stdin"
        )
    return secret


def _report(found: AccountCheckAnswer, site: SiteAnswer) -> dict[str, str]:
    """Facts about a driver on a real cloud, without names, ids, addresses, credentials or words of the provider."""
    return {
        "teraflock": __version__,
        "provider": site.kind,
        "check": "ok" if found.ok else found.code,
        "state": site.state,
        "machine types read": "yes" if site.types_at else "not yet: repeat this in a minute",
        "machine types": str(len({each.name for each in site.types})),
        "regions": str(len({each.region for each in site.types})),
        "instances": str(site.instances),
        "default address": "no" if site.options.get("base_url") else "yes",
    }


def _write_check(found: AccountCheckAnswer) -> None:
    if found.ok:
        click.echo(f"{found.name}: ok, {found.found}")
        return
    click.echo(f"{found.name}: {found.problem}")
    if found.hint:
        remark(f"\nhint: {found.hint}")


def _write_orphans(orphans: tuple[OrphanAnswer, ...]) -> None:
    click.echo("")
    write_table(ORPHAN_FIELDS, orphans)
