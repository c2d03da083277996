"""`tera quota`: show and set the quotas of projects and organisations, and show usage."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from msgspec.structs import replace

from teraflock.base.errors import BadInput
from teraflock.base.quantities import bytes_text, parse_memory_bytes
from teraflock.catalog.cards import cards_by_id
from teraflock.catalog.names import find_cards
from teraflock.cli.connection import connected, mark_simulated
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, project_option, with_options
from teraflock.cli.output import remark, tell, write_json
from teraflock.cli.pages import project_ref
from teraflock.cli.parse import parse_pairs
from teraflock.cli.table import Column, write_rows
from teraflock.wire.quota import OrganisationUsage, QuotaShape, UsageAnswer

if TYPE_CHECKING:
    from teraflock.client import Client

Q = TypeVar("Q", bound=QuotaShape)
NO_LIMIT: Final = "none"
DATA_DEFAULT: Final = "64 GB"
HELP: Final = """Show and set quotas: the most that a project or an organisation can have at a time.

The quota of an organisation limits the sum over its projects; only operators can set it. Within it, owners of the
organisation set the quotas of projects.

\b
Examples:
  tera quota show --project vision
  tera quota set --project vision --instances 20 --gpus V100=4
  tera quota set --project vision --instances none
  tera quota show --org vision-lab
  tera quota set --org vision-lab --projects 5 --instances 50 --images 200
"""
_USED, _LIMIT = Column("USED", right=True), Column("LIMIT", right=True)
COLUMNS: Final = (Column("QUOTA"), _USED, _LIMIT)
BOTH_COLUMNS: Final = (
    Column("QUOTA"),
    Column("PROJECT USED", right=True),
    Column("LIMIT", right=True),
    Column("ORG USED", right=True),
    Column("LIMIT", right=True),
)
limit_options = with_options(
    click.option("--instances", metavar="N", help="Instances. `none` means no limit, here and below."),
    click.option("--vcpus", metavar="N", help="vCPUs."),
    click.option("--ram", metavar="GB", help="Memory."),
    click.option("--disk", metavar="GB", help="Disks and snapshots, including those of stopped instances."),
    click.option("--images", metavar="GB", help="The project's own images."),
    click.option(
        "--data", metavar="GB", help=f"Datasets. Without any limit: {DATA_DEFAULT} for each project."
    ),
    click.option("--ports", metavar="N", help="Published ports."),
    click.option("--addresses", metavar="N", help="Public addresses."),
    click.option("--networks", metavar="N", help="Networks, including `default`."),
    click.option("--gpus", multiple=True, metavar="MODEL=N", help="GPUs of one model. Can be repeated."),
    click.option("--gpus-default", metavar="N", help="GPUs of each model without its own limit."),
)
command = NamingGroup("command", help=HELP)
_organisation_option = click.option(
    "--org", "organisation", default="", metavar="NAME|ID", help="The organisation, instead of a project."
)


@command.command(help="Show what a project and its organisation use, and their quotas.")
@project_option
@_organisation_option
@json_option
def show(project: str | None, organisation: str, as_json: bool) -> None:
    with connected(project) as client:
        usage = _usage(client, project, organisation)
        mark_simulated(client)
    if as_json:
        write_json(usage)
    elif isinstance(usage, UsageAnswer) and usage.organisation:
        write_rows(BOTH_COLUMNS, _beside(usage, usage.organisation))
    else:
        write_rows(COLUMNS, [[each, *row] for each, row in _rows(usage).items()])


def _usage(client: "Client", project: str | None, organisation: str) -> UsageAnswer | OrganisationUsage:
    if organisation:
        return client.quotas.organisation_usage(organisation)
    return client.quotas.usage(project_ref(client, project))


@command.command(
    "set",
    help="Set the quota of a project (owners of the organisation) or, with `--org`, of an organisation (operators)."
    " Limits that you leave out keep their value.",
)
@limit_options
@click.option("--projects", metavar="N", help="With `--org`: projects.")
@project_option
@_organisation_option
@json_option
def set_quota(project: str | None, organisation: str, as_json: bool, **words: Any) -> None:
    if not any(words.values()):
        raise BadInput("No limit was given", hint="Name one, such as `--instances 20` or `--gpus V100=4`")
    if words["projects"] is not None and not organisation:
        raise BadInput("`--projects` is a limit of an organisation", hint="Name it with `--org`")
    with connected(project) as client:
        if organisation:
            before = client.quotas.organisation_usage(organisation).quota
            projects = _limit(words["projects"], "--projects", _count)
            limits = limits_from(words, before)
            whole = client.quotas.set_organisation(
                organisation, replace(limits, projects=projects[1]) if projects[0] else limits
            )
            _report(whole, f"organisation `{whole.name}`", f"--org {whole.name}", as_json)
        else:
            ref = project_ref(client, project)
            after = client.quotas.set(ref, limits_from(words, client.quotas.usage(ref).quota))
            _report(after, f"project `{after.name}`", f"--project {ref}", as_json)


def _report(after: object, whose: str, option: str, as_json: bool) -> None:
    tell(after, f"Set the quota of {whose}. Show it with `tera quota show {option}`", as_json)


def limits_from(words: Mapping[str, Any], before: Q) -> Q:
    """The previous quota with the limits that the options change."""
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
        "images_bytes": _limit(words["images"], "--images", _size),
        "data_bytes": _limit(words["data"], "--data", _size),
        "ports": _limit(words["ports"], "--ports", _count),
        "addresses": _limit(words["addresses"], "--addresses", _count),
        "networks": _limit(words["networks"], "--networks", _count),
        "gpus_default": _limit(words["gpus_default"], "--gpus-default", _count),
    }
    given = {name: value for name, (is_given, value) in changes.items() if is_given}
    return replace(before, gpus=gpus, **given)


def _cards(name: str) -> list[str]:
    """The ids of all GPU models that a name matches. Unknown names are refused: their limit would have no effect."""
    if ":" in name or name in cards_by_id():  # a slice has its profile after a colon
        return [name]
    found = [card.id for card in find_cards(name)]
    if len(found) > 1:
        remark(f"`{name}` matches {', '.join(found)}: each of them gets this limit")
    return found


def _limit(text: str | None, option: str, parse: Callable[[str, str], int | None]) -> tuple[bool, int | None]:
    return (False, None) if text is None else (True, parse(text, option))


def _count(text: str, option: str) -> int | None:
    if text == NO_LIMIT:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise BadInput(
            f"`{option} {text}` is not a number", hint=f"Write a number, or `{NO_LIMIT}` for no limit"
        )
    return int(text)


def _size(text: str, option: str) -> int | None:
    return None if text == NO_LIMIT else parse_memory_bytes(text)


def _rows(usage: UsageAnswer | OrganisationUsage, cards: Iterable[str] = ()) -> dict[str, list[str]]:
    """Usage and limit by resource. GPU models are those in use, those with a limit, and `cards`."""
    quota = usage.quota

    def limit(value: int | None, text: Callable[[int], str] = str) -> str:
        return "no limit" if value is None else text(value)

    rows = {
        "instances": [str(usage.instances), limit(quota.instances)],
        "vCPUs": [str(usage.vcpus), limit(quota.vcpus)],
        "memory": [bytes_text(usage.ram_bytes), limit(quota.ram_bytes, bytes_text)],
        "disk": [bytes_text(usage.disk_bytes), limit(quota.disk_bytes, bytes_text)],
        "images": [bytes_text(usage.images_bytes), limit(quota.images_bytes, bytes_text)],
        "data": [bytes_text(usage.data_bytes), _data_limit(usage)],
        "ports": [str(usage.ports), limit(quota.ports)],
        "addresses": [str(usage.addresses), limit(quota.addresses)],
        "networks": [str(usage.networks), limit(quota.networks)],
    }
    for card in sorted({*usage.gpus, *quota.gpus, *cards}):
        rows[card] = [str(usage.gpus.get(card, 0)), limit(quota.gpus.get(card, quota.gpus_default))]
    rows["other GPUs"] = ["", limit(quota.gpus_default)]
    if isinstance(usage, OrganisationUsage):
        rows["projects"] = [str(usage.projects), limit(usage.quota.projects)]
    return rows


def _data_limit(usage: UsageAnswer | OrganisationUsage) -> str:
    """Without any limit, a default applies to each project."""
    outer = usage.organisation if isinstance(usage, UsageAnswer) else None
    if usage.quota.data_bytes is not None:
        return bytes_text(usage.quota.data_bytes)
    return "no limit" if outer and outer.quota.data_bytes is not None else f"{DATA_DEFAULT} per project"


def _beside(usage: UsageAnswer, whole: OrganisationUsage) -> list[list[str]]:
    cards = {*usage.gpus, *usage.quota.gpus, *whole.gpus, *whole.quota.gpus}
    of_project, of_organisation = _rows(usage, cards), _rows(whole, cards)
    names = [*of_project, *(name for name in of_organisation if name not in of_project)]
    return [[name, *of_project.get(name, ["", ""]), *of_organisation.get(name, ["", ""])] for name in names]
