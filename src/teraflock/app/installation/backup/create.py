"""`tera backup create`: the whole installation in one file, while the server runs.

The database is read in one transaction. Then the disks are exported, each in its current state.
"""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from teraflock import __version__
from teraflock.app.engines import engine_mark
from teraflock.app.installation.backup import disks
from teraflock.app.installation.backup.archive import DATABASE, BackupDisk, Manifest, Writer, new_archive
from teraflock.app.installation.backup.stored import add_stored
from teraflock.app.installation.places import Places
from teraflock.app.settings import Settings, load_settings
from teraflock.base.clock import Clock
from teraflock.base.errors import NotFound, Refused
from teraflock.image.store import made_of_instances
from teraflock.instance.across.store import ids_on_engines_in_all_projects
from teraflock.storage.database import Transaction
from teraflock.storage.dump import dump, has_rows, tables_of
from teraflock.storage.migrate import load_migrations, schema_of
from teraflock.storage.open import open_as_it_is
from teraflock.tenant.installation.store import installation_id
from teraflock.tenant.organisation.store import count_organisations

FILES: Final = ("settings.toml", "operator.key", "secrets.key")
"""Files in the server's folder. The settings are also in the manifest, for `tera backup show`."""
RATES: Final = "rates.csv"

OnProgress = Callable[[str], None]


def create(
    places: Places, target: Path, clock: Clock, on_progress: OnProgress, *, with_disks: bool = False
) -> Manifest:
    settings = load_settings(places.server)
    address = places.server.database(settings)
    if "://" not in address and not Path(address).exists():
        raise NotFound(f"There is no installation in {places.home}", hint="Set one up with `make up`")
    if with_disks and settings.engine != "lxd":
        raise Refused("The simulated engine has no disks", hint="Leave out `--with-disks`")
    database = open_as_it_is(address)
    try:
        if not has_rows(database):
            raise NotFound(f"There is no installation in {places.home}", hint="Set one up with `make up`")
        schema = schema_of(database)
        tables = tables_of(schema, clock)
        with new_archive(target) as writer:
            with database.read() as tx:
                on_progress("database")
                writer.add(DATABASE, dump(tx, tables))
                manifest = _manifest(tx, places, settings, clock, schema)
            _add_files(writer, places)
            on_progress("files of runs and data")
            more = add_stored(writer, places.cloud)
            manifest = replace(manifest, not_included=(*manifest.not_included, *more))
            exported = _add_disks(writer, settings, manifest, on_progress) if with_disks else ()
            finished = _finished(manifest, writer, exported)
            writer.finish(finished)
    finally:
        database.close()
    return finished


def _manifest(tx: Transaction, places: Places, settings: Settings, clock: Clock, schema: int) -> Manifest:
    images = tuple(
        f"image {name}: made from an instance, stored only in the engine" for name in made_of_instances(tx)
    )
    ids = ids_on_engines_in_all_projects(tx)
    return Manifest(
        teraflock=__version__,
        schema=schema,
        schema_checksums=tuple(each.checksum for each in load_migrations()[:schema]),
        created_at=clock.now(),
        machine=socket.gethostname(),
        installation_id=installation_id(tx) or "",
        engine=settings.engine,
        engine_is_ours=Path(settings.lxd_socket).parent == places.lxd,
        organisations=count_organisations(tx),
        instances=len(ids),
        settings=places.settings.read_text("utf-8") if places.settings.exists() else "",
        parts={},
        disks=tuple(BackupDisk(instance_id=id, part=f"disks/{id}.tar.zst") for id in ids),
        not_included=images,
    )


def _add_files(writer: Writer, places: Places) -> None:
    for name in FILES:
        path = places.cloud / name
        if path.exists():
            writer.add(name, [path.read_bytes()])
    rates = places.home / RATES
    if rates.exists():
        writer.add(RATES, [rates.read_bytes()])


def _add_disks(
    writer: Writer, settings: Settings, manifest: Manifest, on_progress: OnProgress
) -> tuple[BackupDisk, ...]:
    exported = []
    with disks.exporting(settings, engine_mark(manifest.installation_id)) as export:
        for number, disk in enumerate(manifest.disks, start=1):
            on_progress(f"disk {number} of {len(manifest.disks)}")
            pieces: Iterator[bytes] | None = export(disk.instance_id)
            if pieces is not None:  # None: it was deleted meanwhile, or never created
                writer.add(disk.part, pieces, packed=False)
                exported.append(disk)
    return tuple(exported)


def _finished(manifest: Manifest, writer: Writer, exported: tuple[BackupDisk, ...]) -> Manifest:
    left_out = () if exported else ("the disks of instances",) if manifest.instances else ()
    return replace(
        manifest, parts=dict(writer.parts), disks=exported, not_included=(*left_out, *manifest.not_included)
    )
