"""Chooses the engine for this machine: an existing LXD or Incus, one of our own, or the simulated engine.

Invariants: an engine that existed before us is used and never stopped. A simulated engine always has a reason.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from teraflock.app.installation import background
from teraflock.app.installation.places import Places
from teraflock.base.errors import TeraflockError
from teraflock.drivers.lxd import daemon, kernel

MODPROBE_SECONDS_MAX: Final = 10
SECOND_INSTALLATION: Final = "`TERA_HOME=/srv/teraflock make up` as root"
"""An installation keeps its engine, so a real one needs a second installation. The advice never removes anything."""


class Engine(msgspec.Struct, frozen=True, kw_only=True, rename={"description": "told"}):  # as in saved files
    kind: Literal["lxd", "simulated"]
    description: str
    """A short description. For the simulated engine, the reason for it."""
    repair: str = ""
    """How to get a real engine."""
    socket: str = ""
    is_ours: bool = False
    """Whether we start and stop its daemon."""


def choose(places: Places, environment: Mapping[str, str] = os.environ) -> Engine:
    """The engine that this machine could use. Starts nothing."""
    if environment.get("TERA_ENGINE") == "simulated":
        return Engine(kind="simulated", description="requested by TERA_ENGINE")
    if not Path("/proc/self").exists():
        return Engine(kind="simulated", description="containers need Linux")
    if os.geteuid() != 0:
        return Engine(kind="simulated", description="not root", repair="Run `make up` as root")
    if chosen := environment.get("TERA_LXD_SOCKET"):
        return Engine(kind="lxd", description=f"the one at {chosen}", socket=chosen)
    found = None if daemon.answers(places.lxd / "unix.socket") else daemon.find(environment)
    if found and daemon.answers(found):
        return Engine(kind="lxd", description=f"the existing one at {found.parent}", socket=str(found))
    program = daemon.Daemon(places.lxd).program()
    if program and program.path():
        description = f"our own {program.title} in {places.lxd}"
        return Engine(
            kind="lxd", description=description, socket=str(places.lxd / "unix.socket"), is_ours=True
        )
    return Engine(
        kind="simulated",
        description=f"{program.title} is not installed" if program else "neither LXD nor Incus is installed",
        repair=f"`sh scripts/engine-install` as root, then {SECOND_INSTALLATION}",
    )


def prepared(engine: Engine, places: Places) -> Engine:
    """Start the engine. Returns the simulated engine with a reason if that fails."""
    if engine.kind == "simulated":
        return engine
    _load_bridge_filter()
    kernel.raise_limits()
    if not kernel.filters_bridges():
        return Engine(
            kind="simulated",
            description="this kernel does not filter bridges, so tenants would not be isolated",
            repair=f"`modprobe br_netfilter; sysctl net.bridge.bridge-nf-call-iptables=1`, then {SECOND_INSTALLATION}",
        )
    try:
        if engine.is_ours:
            for folder in (places.engine.parent, places.engine):
                folder.mkdir(exist_ok=True)
                folder.chmod(0o711)  # whatever the umask: guests must pass through, but not list files
            daemon.Daemon(places.lxd).ensure()
    except TeraflockError as error:
        description = f"{error.sentence[:1].lower()}{error.sentence[1:]}"
        if engine.is_ours:
            daemon.Daemon(places.lxd).stop()  # its helper processes may be running
        return Engine(kind="simulated", description=description, repair=_repair(places, error))
    return engine


def _repair(places: Places, error: TeraflockError) -> str:
    """A daemon that does not start writes the reason to its log."""
    log = places.lxd.with_name(f"{places.lxd.name}.log")
    lines = background.last_lines(log)
    return f"fix the last error in {log}, then run `make up`: {lines[-1]}" if lines else error.hint


def _load_bridge_filter() -> None:
    """Try to load the filter. The caller checks the result."""
    if kernel.filters_bridges():
        return
    program = shutil.which("modprobe")
    if program:
        subprocess.run(
            [program, "br_netfilter"], capture_output=True, check=False, timeout=MODPROBE_SECONDS_MAX
        )
    kernel.filter_bridges()


def stop(places: Places, *, guests_too: bool) -> bool:
    """Stop our own daemon. False: it is not running. An engine that existed before us is not touched."""
    ours = daemon.Daemon(places.lxd)
    if ours.pid() is None:
        return False
    if guests_too:
        ours.stop()
    else:
        ours.stop_daemon_alone()
    return True
