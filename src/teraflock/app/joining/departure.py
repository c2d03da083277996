"""How a machine stops being a host: `tera host leave` keeps its instances, `tera purge` removes them, too.

Both first stop the host program, and forget the key last: until then the configuration says what else to remove.
"""

import shutil
from pathlib import Path

from teraflock.app.joining.background import stop
from teraflock.app.joining.config import HostConfig, HostPlaces, forget, read_config
from teraflock.base.errors import BadInput
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.network import LxdNetworks
from teraflock.drivers.lxd.rest import LxdClient


def leave(places: HostPlaces) -> None:
    """Stop the host program, remove the links to other hosts, and delete the key. Instances keep running."""
    stop(places)
    found = config_of_engine(places)
    if found is not None:
        _drop_links(Path(found.options["socket"]), names_of(found))
    forget(places)


def remove_files(places: HostPlaces) -> None:
    """Delete everything that the host program stored."""
    stop(places)
    forget(places)
    shutil.rmtree(places.folder, ignore_errors=True)


def names_of(config: HostConfig) -> Names:
    return Names(config.mark, config.options.get("member", ""))


def config_of_engine(places: HostPlaces) -> HostConfig | None:
    """The configuration of a host with a real engine. None if there is none, or if it is damaged."""
    try:
        found = read_config(places)
    except BadInput:
        return None
    return found if found is not None and found.engine == "lxd" else None


def _drop_links(socket: Path, ours: Names) -> None:
    engine = LxdClient(socket)
    try:
        LxdNetworks(engine, ours, way_out=False).unlink()
    finally:
        engine.close()
