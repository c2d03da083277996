"""Which engine runs instances here: the LXD or Incus that is there, one of our own, or, where neither can be, none.

What holds: an engine that was there before us is used and never stopped; what is simulated says why it is.
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
AFRESH: Final = "`TERA_HOME=/srv/teraflock make up` as root"
"""An installation keeps its engine. So a real one is set up beside it; advice never removes what is there."""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    kind: Literal["lxd", "simulated"]
    told: str
    """In a few words what it is; of a simulated one, why."""
    repair: str = ""
    """What to do to have a real one."""
    socket: str = ""
    is_ours: bool = False
    """Whether we start and stop its daemon."""


def choose(places: Places, environment: Mapping[str, str] = os.environ) -> Engine:
    """What could run here, without starting anything."""
    if environment.get("TERA_ENGINE") == "simulated":
        return Engine(kind="simulated", told="asked for by TERA_ENGINE")
    if not Path("/proc/self").exists():
        return Engine(kind="simulated", told="containers need Linux")
    if os.geteuid() != 0:
        return Engine(kind="simulated", told="not root", repair="Run `make up` as root")
    if chosen := environment.get("TERA_LXD_SOCKET"):
        return Engine(kind="lxd", told=f"the one at {chosen}", socket=chosen)
    found = None if daemon.answers(places.lxd / "unix.socket") else daemon.find(environment)
    if found and daemon.answers(found):
        return Engine(kind="lxd", told=f"the one that is there, at {found.parent}", socket=str(found))
    program = daemon.Daemon(places.lxd).program()
    if program and program.path():
        told = f"{program.title} of our own, in {places.lxd}"
        return Engine(kind="lxd", told=told, socket=str(places.lxd / "unix.socket"), is_ours=True)
    return Engine(
        kind="simulated",
        told=f"{program.title} is not installed" if program else "neither LXD nor Incus is installed",
        repair=f"`sh scripts/engine-install` as root, then {AFRESH}",
    )


def prepared(engine: Engine, places: Places) -> Engine:
    """The engine, running; the simulated one with the reason where it cannot be."""
    if engine.kind == "simulated":
        return engine
    _load_bridge_filter()
    kernel.raise_limits()
    if not kernel.filters_bridges():
        return Engine(
            kind="simulated",
            told="this kernel does not filter bridges, so tenants could not be kept apart",
            repair=f"`modprobe br_netfilter; sysctl net.bridge.bridge-nf-call-iptables=1`, then {AFRESH}",
        )
    try:
        if engine.is_ours:
            for folder in (places.engine.parent, places.engine):
                folder.mkdir(exist_ok=True)
                folder.chmod(
                    0o711
                )  # whatever the umask: guests must be let through, and see nothing on the way
            daemon.Daemon(places.lxd).ensure()
    except TeraflockError as error:
        told = f"{error.sentence[:1].lower()}{error.sentence[1:]}"
        if engine.is_ours:
            daemon.Daemon(places.lxd).stop()  # what stands beside it may have come up
        return Engine(kind="simulated", told=told, repair=_repair(places, error))
    return engine


def _repair(places: Places, error: TeraflockError) -> str:
    """A daemon that does not start says why in its log; nobody else can."""
    log = places.lxd.with_name(f"{places.lxd.name}.log")
    lines = background.last_lines(log)
    return f"repair what {log} ends with, then `make up`: {lines[-1]}" if lines else error.hint


def _load_bridge_filter() -> None:
    """As far as it goes: whether frames are filtered is looked at afterwards."""
    if kernel.filters_bridges():
        return
    program = shutil.which("modprobe")
    if program:
        subprocess.run(
            [program, "br_netfilter"], capture_output=True, check=False, timeout=MODPROBE_SECONDS_MAX
        )
    try:
        (kernel.SYSTEM / kernel.BRIDGE_FILTER).write_text("1\n", "ascii")
    except OSError:
        return  # no such setting without the module


def stop(places: Places, *, guests_too: bool) -> bool:
    """Stop our own daemon. False where none runs: an engine that was there before us is not touched."""
    ours = daemon.Daemon(places.lxd)
    if ours.pid() is None:
        return False
    if guests_too:
        ours.stop()
    else:
        ours.stop_daemon_alone()
    return True
