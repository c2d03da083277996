"""Exports disks of instances from the engine, and imports them, with their snapshots."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from teraflock.app.settings import Settings
from teraflock.drivers.lxd import export as exports
from teraflock.drivers.lxd.names import Names, guest
from teraflock.drivers.lxd.rest import LxdClient

Export = Callable[[str], Iterator[bytes] | None]


@contextmanager
def exporting(settings: Settings, installation: str) -> Iterator[Export]:
    """A function that streams an instance's disk, or returns None if the engine does not have it."""
    engine = LxdClient(Path(settings.lxd_socket), project=Names(installation).project)
    try:
        yield lambda instance_id: exports.exported(engine, guest(instance_id))
    finally:
        engine.close()


@contextmanager
def importing(settings: Settings, installation: str) -> Iterator[Callable[[str, Path], bool]]:
    """A function that imports a disk into the engine. It returns False if the engine already has that instance."""
    ours = Names(installation)
    engine = LxdClient(Path(settings.lxd_socket), project=ours.project)
    try:
        yield lambda instance_id, file: exports.imported(engine, ours, guest(instance_id), file)
    finally:
        engine.close()
