"""`tera backup`: save the installation to one file, and restore it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from teraflock.base.clock import SystemClock
from teraflock.base.quantities import bytes_text
from teraflock.cli.confirm import confirm
from teraflock.cli.facts import write_facts
from teraflock.cli.lazy import NamingGroup
from teraflock.cli.options import json_option, yes_option
from teraflock.cli.output import emphasised, remark, write_json
from teraflock.cli.waiting import phases
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.app.installation.backup.archive import Manifest

HELP: Final = """Back up the installation on this machine, and restore it here or elsewhere.

A backup contains the database, the settings and the operator's key. `--with-disks` adds the disks of instances. The
file is not encrypted: anyone who can read it can act as the operator, so only its owner may read it. See
docs/operating.md for updates and for moving to another machine.

\b
Examples:
  tera backup create /srv/backup/2026-11-16.tera
  tera backup create /srv/backup/all.tera --with-disks
  tera backup show /srv/backup/2026-11-16.tera
  tera backup restore /srv/backup/2026-11-16.tera
"""
command = NamingGroup("command", help=HELP)


@command.command(help="Write a backup to FILE. The server can keep running.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--with-disks", is_flag=True, help="Include the disks of all instances.")
@json_option
def create(file: Path, with_disks: bool, as_json: bool) -> None:
    from teraflock.app.installation.backup.create import create as make
    from teraflock.app.installation.backup.unfinished import finish_interrupted
    from teraflock.app.installation.locking import alone
    from teraflock.app.installation.places import Places

    places = Places()
    with alone(places), phases() as line:
        finish_interrupted(places)
        made = make(places, file, SystemClock(), line, with_disks=with_disks)
    if as_json:
        write_json(_public(made))
        return
    click.echo(emphasised(f"{file}: {bytes_text(file.stat().st_size)}"))
    write_facts(_facts(made))
    remark("\nThe file is not encrypted and contains the operator's key. Keep it private")


@command.command(help="Verify a backup and show what it contains.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def show(file: Path, as_json: bool) -> None:
    from teraflock.app.installation.backup.archive import opened

    with opened(file) as reader:
        reader.check()
        manifest = reader.manifest
    if as_json:
        write_json(_public(manifest))
        return
    click.echo(emphasised(f"{file}: a complete backup"))
    write_facts(_facts(manifest))


@command.command(help="Restore a backup into this home. The server must be stopped.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Replace the installation that is here.")
@click.option(
    "--database",
    default="",
    metavar="ADDRESS",
    help="The database: `postgresql://…`, or `sqlite` for a file in the home. [default: the backup's]",
)
@yes_option
@json_option
def restore(file: Path, replace: bool, database: str, yes: bool, as_json: bool) -> None:
    from teraflock.app.installation.backup.restore import restore as bring_back
    from teraflock.app.installation.locking import alone
    from teraflock.app.installation.places import Places

    places = Places()
    if replace and not yes:
        confirm(f"Replace the installation in {places.home} with the backup?", "Replacing")
    with alone(places), phases() as line:
        done = bring_back(places, file, SystemClock(), line, replace=replace, database=database)
    if as_json:
        write_json({"restored": _public(done.manifest), "replaced": done.replaced, "disks": done.disks})
        return
    click.echo(f"Restored the installation of {time_text(done.manifest.created_at)} UTC in {places.home}")
    if done.replaced:
        remark(f"The previous installation is in {done.replaced}")
    if done.renamed_host:
        remark(f"Renamed its host `{done.renamed_host}` to this machine's name")
    if done.disks:
        remark(f"Imported {done.disks} disk{'s' * (done.disks != 1)} into the engine")
    for each in done.manifest.not_included:
        remark(f"Not in the backup: {each}")
    remark("\nNext: run `make up` to start it")


def _facts(manifest: "Manifest") -> Iterator[tuple[str, str]]:
    yield "created", f"{time_text(manifest.created_at)} UTC on {manifest.machine}"
    yield "by", f"Teraflock {manifest.teraflock}, schema {manifest.schema}"
    yield "installation", manifest.installation_id
    yield "engine", manifest.engine
    yield "organisations", str(manifest.organisations)
    yield "instances", str(manifest.instances)
    yield "disks", str(len(manifest.disks)) if manifest.disks else "none"
    for each in manifest.not_included:
        yield "not included", each


def _public(manifest: "Manifest") -> dict[str, object]:
    """The manifest without the text of the settings, which may contain a password."""
    told: dict[str, object] = msgspec.to_builtins(manifest)
    return {name: value for name, value in told.items() if name not in ("settings", "schema_checksums")}
