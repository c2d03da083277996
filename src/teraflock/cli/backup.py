"""`tera backup`: the whole installation in one file, and back."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from teraflock.base.quantities import memory_text
from teraflock.cli.confirm import confirm
from teraflock.cli.instance.show import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import emphasised, remark, write_json
from teraflock.cli.waiting import phases
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.app.house.backup.archive import Manifest

HELP: Final = """Back up the installation on this machine, and restore it here or elsewhere.

A backup holds the database, the settings and the operator's key; with `--with-disks` also the disks of instances. It is
not encrypted: whoever can read it can log in as the operator. Only its owner may read the file. docs/operating.md shows
how to update and how to move to another machine.

\b
Examples:
  tera backup create /srv/backup/2026-11-16.tera
  tera backup create /srv/backup/all.tera --with-disks
  tera backup show /srv/backup/2026-11-16.tera
  tera backup restore /srv/backup/2026-11-16.tera
"""


@click.group(cls=NamingGroup, help=HELP)
def command() -> None:
    pass


@command.command(help="Write a backup to FILE, while the server runs.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--with-disks", is_flag=True, help="With the disks of all instances, as they are now.")
@json_option
def create(file: Path, with_disks: bool, as_json: bool) -> None:
    from teraflock.app.house.backup.create import create as make
    from teraflock.app.house.backup.unfinished import finish_interrupted
    from teraflock.app.house.locking import alone
    from teraflock.app.house.places import Places
    from teraflock.base.clock import SystemClock

    places = Places()
    with alone(places), phases() as line:
        finish_interrupted(places)
        made = make(places, file, SystemClock(), line, with_disks=with_disks)
    if as_json:
        write_json(_public(made))
        return
    click.echo(emphasised(f"{file}: {memory_text(file.stat().st_size)}"))
    write_facts(_facts(made))
    remark("\nIt is not encrypted and holds the operator's key: only you can read it. Keep it so")


@command.command(help="Say what is in a backup, after checking every part of it.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def show(file: Path, as_json: bool) -> None:
    from teraflock.app.house.backup.archive import opened

    with opened(file) as reader:
        reader.check()
        manifest = reader.manifest
    if as_json:
        write_json(_public(manifest))
        return
    click.echo(emphasised(f"{file}: a whole backup"))
    write_facts(_facts(manifest))


@command.command(help="Restore a backup into this home. The server must be stopped.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Put it in place of the installation that is here.")
@click.option(
    "--database",
    default="",
    metavar="ADDRESS",
    help="Into this database: `postgresql://…`, or `sqlite` for a file in the home. [default: the backup's]",
)
@yes_option
@json_option
def restore(file: Path, replace: bool, database: str, yes: bool, as_json: bool) -> None:
    from teraflock.app.house.backup.restore import restore as bring_back
    from teraflock.app.house.locking import alone
    from teraflock.app.house.places import Places
    from teraflock.base.clock import SystemClock

    places = Places()
    if replace and not yes:
        confirm(f"Put the backup in place of the installation in {places.home}?", "Replacing")
    with alone(places), phases() as line:
        done = bring_back(places, file, SystemClock(), line, replace=replace, database=database)
    if as_json:
        write_json({"restored": _public(done.manifest), "replaced": done.replaced, "disks": done.disks})
        return
    click.echo(f"The installation of {time_text(done.manifest.created_at)} UTC is restored in {places.home}")
    if done.replaced:
        remark(f"What was here lies in {done.replaced}")
    if done.renamed_host:
        remark(f"Its host `{done.renamed_host}` now has the name of this machine")
    if done.disks:
        remark(f"{done.disks} disk{'s' * (done.disks != 1)} brought into the engine")
    for each in done.manifest.not_included:
        remark(f"Not in the backup: {each}")
    remark("\nNext: `make up` starts it")


def _facts(manifest: "Manifest") -> Iterator[tuple[str, str]]:
    yield "made at", f"{time_text(manifest.created_at)} UTC on {manifest.machine}"
    yield "by", f"Teraflock {manifest.teraflock}, schema {manifest.schema}"
    yield "installation", manifest.installation_id
    yield "engine", manifest.engine
    yield "organisations", str(manifest.organisations)
    yield "instances", str(manifest.instances)
    yield "disks", str(len(manifest.disks)) if manifest.disks else "none"
    for each in manifest.not_included:
        yield "without", each


def _public(manifest: "Manifest") -> dict[str, object]:
    """Without the text of the settings, which may hold a password."""
    import msgspec

    told: dict[str, object] = msgspec.to_builtins(manifest)
    return {name: value for name, value in told.items() if name not in ("settings", "schema_checksums")}
