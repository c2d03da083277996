"""`tera quota`: what a project has, and the most it may have."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.base.quantities import bytes_text, parse_memory_bytes
from teraflock.catalog.cards import cards_by_id
from teraflock.catalog.names import find_cards
from teraflock.cli.cloud.connection import connected, mark_simulated
from teraflock.cli.cloud.options import json_option, project_option
from teraflock.cli.cloud.pages import project_ref
from teraflock.cli.cloud.words import parse_pairs
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.output import columns, remark, write_json
from teraflock.cli.table import Column, render
from teraflock.wire.tenant import QuotaShape

if TYPE_CHECKING:
    from teraflock.wire.tenant import UsageAnswer

F = TypeVar("F", bound=Callable[..., Any])

NO_LIMIT: Final = "none"
HELP: Final = """What a project has now, and the most it may have at a time.

\b
Examples:
  tera quota show --project vision
  tera quota set --project vision --instances 20 --gpus V100=4 --ram 256
  tera quota set --project vision --instances none
"""
COLUMNS: Final = (Column("WHAT"), Column("HAS", right=True), Column("MAY HAVE", right=True))
_OPTIONS: Final = (
    click.option("--instances", metavar="N", help="Instances; `none` is no limit, here and below."),
    click.option("--vcpus", metavar="N", help="Processors."),
    click.option("--ram", metavar="GB", help="Memory."),
    click.option("--disk", metavar="GB", help="Disks, those of stopped instances included."),
    click.option("--gpus", multiple=True, metavar="CARD=N", help="Cards of one model; may be repeated."),
    click.option("--gpus-default", metavar="N", help="Cards of every model that is not named."),
)


def limit_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.group(cls=NamingGroup, help=HELP)
def command() -> None:
    pass


@command.command(help="What the project has, beside what it may have.")
@project_option
@json_option
def show(project: str | None, as_json: bool) -> None:
    with connected(project) as client:
        usage = client.usage(project_ref(client, project))
        mark_simulated(client)
    if as_json:
        write_json(usage)
    else:
        click.echo(render(COLUMNS, list(_rows(usage)), columns()))


@command.command("set", help="Set the most a project may have; what is left out stays. For operators.")
@limit_options
@project_option
@json_option
def set_quota(project: str | None, as_json: bool, **words: object) -> None:
    if not any(words.values()):
        raise BadInput("Nothing is to be changed", hint="Say what: `--instances 20`, `--gpus V100=4` …")
    with connected(project) as client:
        ref = project_ref(client, project)
        after = client.set_quota(ref, limits_from(words, client.usage(ref).quota))
    if as_json:
        write_json(after)
    else:
        remark(f"The quota of `{after.name}` is set; `tera quota show --project {after.name}` shows it")


def limits_from(words: Mapping[str, Any], before: QuotaShape | None = None) -> QuotaShape:
    """The quota that the words make of the one before."""
    before = before or QuotaShape()
    gpus = dict(before.gpus)
    for name, count in parse_pairs(words["gpus"], "--gpus").items():
        limit = _count(count, "--gpus")
        if limit is None and name in gpus:
            del gpus[name]
            continue
        for card in _cards(name):
            if limit is None:
                gpus.pop(card, None)
            else:
                gpus[card] = limit
    changes = {
        "instances": _limit(words["instances"], "--instances", _count),
        "vcpus": _limit(words["vcpus"], "--vcpus", _count),
        "ram_bytes": _limit(words["ram"], "--ram", _size),
        "disk_bytes": _limit(words["disk"], "--disk", _size),
        "gpus_default": _limit(words["gpus_default"], "--gpus-default", _count),
    }
    given = {name: value for name, (is_given, value) in changes.items() if is_given}
    return replace(before, gpus=gpus, **given)


def _cards(name: str) -> list[str]:
    """The ids of all cards a name may mean: a limit on a name that no card bears would limit nothing."""
    if ":" in name or name in cards_by_id():  # a slice bears its profile behind a colon
        return [name]
    found = [card.id for card in find_cards(name)]
    if len(found) > 1:
        remark(f"`{name}` means {', '.join(found)}: each of them is limited for itself")
    return found


def _limit(text: str | None, option: str, parse: Callable[[str, str], int | None]) -> tuple[bool, int | None]:
    return (False, None) if text is None else (True, parse(text, option))


def _count(text: str, option: str) -> int | None:
    if text == NO_LIMIT:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise BadInput(
            f"`{option} {text}` is no number", hint=f"Write a number, or `{NO_LIMIT}` for no limit"
        )
    return int(text)


def _size(text: str, option: str) -> int | None:
    return None if text == NO_LIMIT else parse_memory_bytes(text)


def _rows(usage: "UsageAnswer") -> list[list[str]]:
    quota = usage.quota

    def limit(value: int | None, text: Callable[[int], str] = str) -> str:
        return "no limit" if value is None else text(value)

    rows = [
        ["instances", str(usage.instances), limit(quota.instances)],
        ["vCPUs", str(usage.vcpus), limit(quota.vcpus)],
        ["memory", bytes_text(usage.ram_bytes), limit(quota.ram_bytes, bytes_text)],
        ["disk", bytes_text(usage.disk_bytes), limit(quota.disk_bytes, bytes_text)],
    ]
    cards = [
        [card, str(usage.gpus.get(card, 0)), limit(quota.gpus.get(card, quota.gpus_default))]
        for card in sorted({*usage.gpus, *quota.gpus})
    ]
    return [*rows, *cards, ["other GPUs", "", limit(quota.gpus_default)]]
