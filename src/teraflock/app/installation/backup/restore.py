"""`tera backup restore`: an installation from a backup, into SQLite or PostgreSQL.

    check     the whole file, before any change
    stage     the new files in `cloud/restoring`; the existing files stay unchanged
    note      `cloud/restore.json`: from here on the restore is completed, even after a crash
    move      each file to its place, the old files to `cloud/replaced`

If it is interrupted before the note, the old installation is intact. If it is interrupted afterwards, the next
`tera up`, `serve` or `backup` moves the rest. A PostgreSQL database is replaced in one transaction before the note.
"""

import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from teraflock.app.engines import engine_mark, open_engines
from teraflock.app.files import put, sync_folder
from teraflock.app.installation import background, engine
from teraflock.app.installation.backup import disks
from teraflock.app.installation.backup.archive import DATABASE, Manifest, Reader, opened
from teraflock.app.installation.backup.create import FILES, RATES
from teraflock.app.installation.backup.stored import FOLDERS, stage_stored
from teraflock.app.installation.backup.unfinished import (
    NOTE,
    REPLACED,
    STAGING,
    Move,
    Reach,
    finish_interrupted,
)
from teraflock.app.installation.connection import put_secret
from teraflock.app.installation.places import Places
from teraflock.app.settings import DATABASE_FILE, Place, Settings, load_settings
from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, Refused
from teraflock.fleet.store import rename_only_host
from teraflock.reconcile.restored import make_ready
from teraflock.storage.database import Transaction
from teraflock.storage.dump import has_rows, load
from teraflock.storage.migrate import load_migrations
from teraflock.storage.open import POSTGRES, SQLITE, open_as_it_is

SITE: Final = "local"

OnProgress = Callable[[str], None]


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    manifest: Manifest
    replaced: str = ""
    """The folder with the previous files."""
    renamed_host: str = ""
    """The name that the only host had on the old machine."""
    disks: int = 0
    """The number of disks imported into the engine."""


def restore(
    places: Places,
    source: Path,
    clock: Clock,
    on_progress: OnProgress,
    *,
    replace: bool = False,
    database: str = "",
    reach: Reach = lambda point: None,
) -> Restored:
    """`database` replaces the database address of the backup. Tests use `reach` to end the process at given points."""
    if background.running_pid(places) is not None:
        raise Conflict("The server of this installation is running", hint="Stop it first with `make down`")
    finish_interrupted(places)
    with opened(source) as reader:
        _check_known(reader.manifest)
        on_progress("checking the backup")
        reader.check()
        staged = _staged(places, reader, database)
        settings = load_settings(staged, {})
        is_empty = _is_empty(places, settings)
        if not is_empty and not replace:
            shutil.rmtree(staged.home)
            raise Refused(
                f"There is already an installation in {places.home}",
                hint="`--replace` replaces it with the backup. Back it up first with `tera backup create`",
            )
        reach("staged")
        brought = (
            _bring_disks(places, staged, reader, settings, clock, on_progress) if reader.manifest.disks else 0
        )
        on_progress("database")
        renamed = _load(places, staged, reader, settings, clock)
        reach("loaded")
        note = _moves(places, staged, settings)
    put(places.cloud / NOTE, msgspec.json.encode(note), mode=0o600)
    sync_folder(places.cloud)
    reach("noted")
    finish_interrupted(places, reach)
    old = "" if is_empty else str(places.cloud / REPLACED)
    return Restored(manifest=reader.manifest, replaced=old, renamed_host=renamed, disks=brought)


def _check_known(manifest: Manifest) -> None:
    known = load_migrations()
    if manifest.schema > len(known):
        raise Refused(
            f"The backup is from a newer version of Teraflock (schema {manifest.schema}, supported: {len(known)})",
            hint="Update Teraflock, then restore the backup",
        )
    if manifest.schema_checksums != tuple(each.checksum for each in known[: manifest.schema]):
        raise Refused(
            f"The backup is from another version of Teraflock ({manifest.teraflock}) with different tables",
            hint="Restore it with the version that created it",
        )


def _staged(places: Places, reader: Reader, database: str) -> Place:
    """The small files of the new installation, in the layout of a home."""
    places.cloud.mkdir(parents=True, exist_ok=True, mode=0o700)
    staged = Place(places.cloud / STAGING)
    staged.folder.mkdir(parents=True, mode=0o700)
    for name in (*FILES, RATES):
        if name in reader.manifest.parts:
            put_secret(staged.folder / name, reader.content(name))
    stage_stored(reader, staged.folder)
    if text := settings_here(reader.manifest, places, database):
        put_secret(staged.settings, text.encode())
    return staged


def settings_here(manifest: Manifest, places: Places, database: str) -> str:
    """The settings of a backup, adapted to this home: our own engine is in a different folder for each home."""
    changes: dict[str, str] = {}
    if manifest.engine_is_ours:
        changes["lxd_socket"] = str(places.lxd / "unix.socket")
    if database:
        changes["database"] = "" if database == "sqlite" else database
    text = manifest.settings
    for name, value in changes.items():
        text = re.sub(rf"(?m)^\s*{name}\s*=.*\n?", "", text)
        if value:
            text += f"{'' if text.endswith(chr(10)) or not text else chr(10)}{name} = {_quoted(value)}\n"
    return text


def _quoted(value: str) -> str:
    return msgspec.json.encode(value).decode()  # a JSON string is also valid TOML


def _is_empty(places: Places, settings: Settings) -> bool:
    address = places.server.database(settings)
    if address.startswith(POSTGRES):
        found = open_as_it_is(address)
        try:
            if has_rows(found):
                return False
        finally:
            found.close()
    files = (places.settings, places.operator_key, places.cloud / DATABASE_FILE)
    return not any(path.exists() for path in files) and not _sqlite_at(address).exists()


def _sqlite_at(address: str) -> Path:
    return Path(address.removeprefix(SQLITE))


def _new_database(places: Places, staged: Place, settings: Settings) -> str:
    """Where the rows go: PostgreSQL itself, or a SQLite file next to the one that it will replace."""
    address = places.server.database(settings)
    if address.startswith(POSTGRES):
        return address
    if not settings.database:
        return str(staged.folder / DATABASE_FILE)
    target = _sqlite_at(address)
    return str(target.with_name(f"{target.name}.restoring"))


def _load(places: Places, staged: Place, reader: Reader, settings: Settings, clock: Clock) -> str:
    """Load the rows and prepare them for the loops. Returns the old name of the only host if it was renamed."""
    address = _new_database(places, staged, settings)
    if not address.startswith(POSTGRES):
        Path(address).unlink(missing_ok=True)  # an interrupted restore may have left one
    renamed = ""

    def after(tx: Transaction) -> None:
        nonlocal renamed
        renamed = rename_only_host(tx, SITE, socket.gethostname())
        make_ready(tx, clock.now(), os.urandom)

    database = open_as_it_is(address)
    try:
        load(database, clock, reader.manifest.schema, lambda: reader.lines(DATABASE), after)
    finally:
        database.close()
    return renamed


def _moves(places: Places, staged: Place, settings: Settings) -> list[Move]:
    """Settings and keys come first, because they are needed to find the database."""
    moves = [(staged.folder / name, places.cloud / name) for name in FILES]
    moves.append((staged.folder / RATES, places.home / RATES))
    moves += [(staged.folder / name, places.cloud / name) for name in FOLDERS]
    address = places.server.database(settings)
    if not address.startswith(POSTGRES):
        moves.append((Path(_new_database(places, staged, settings)), _sqlite_at(address)))
    return [Move(staged=str(old), target=str(new)) for old, new in moves]


def _bring_disks(
    places: Places, staged: Place, reader: Reader, settings: Settings, clock: Clock, on_progress: OnProgress
) -> int:
    """Import disks into the engine of this machine, before the rows that refer to them."""
    if reader.manifest.engine_is_ours:
        found = engine.prepared(engine.choose(places, {}), places)
        if found.kind == "simulated":
            raise Refused(f"Could not import the disks: {found.description}", hint=found.repair)
    installation = reader.manifest.installation_id
    open_engines(places.server, settings, installation, clock)  # creates our project, pool and firewall
    brought = 0
    with disks.importing(settings, engine_mark(installation)) as bring:
        for number, disk in enumerate(reader.manifest.disks, start=1):
            on_progress(f"disk {number} of {len(reader.manifest.disks)}")
            file = staged.home / "disk"
            reader.save(disk.part, file)
            brought += bring(disk.instance_id, file)
            file.unlink()
    return brought
