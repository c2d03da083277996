"""Keeps the host program running: by systemd if it runs the machine, otherwise as a process of its own."""

import sys
import time
from pathlib import Path
from typing import Final

from teraflock.app.files import put
from teraflock.app.installation import unit
from teraflock.app.installation.background import end, is_running, log_hint, spawn
from teraflock.app.joining.config import HostPlaces
from teraflock.base.errors import Unavailable

UNIT: Final = "teraflock-host.service"
START_SECONDS_MAX: Final = 60.0
LOOK_AGAIN_SECONDS: Final = 0.05
TEXT: Final = (
    """# Written by `tera host join`, removed by `tera host leave`.
[Unit]
Description=Teraflock host program for {home}
After=network-online.target {engines}
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={python} -m teraflock host serve
Environment={environment}
Restart=always
"""
    + unit.SERVICE
)


def running_pid(places: HostPlaces) -> int | None:
    """The pid of our running host program. The file alone is not enough: another process may have that pid now."""
    try:
        pid = int(places.pid.read_text("ascii"))
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if b"serve" in words and b"host" in words and is_running(pid) else None


def start(places: HostPlaces) -> int:
    """Start the host program and return when it listens. If it already runs, do nothing."""
    pid = running_pid(places)
    if pid is not None:
        return pid
    if unit.is_possible():
        _start_unit(places)
    spawned = None if unit.is_possible() else spawn(("host", "serve"), places.home, places.log)
    for _ in range(int(START_SECONDS_MAX / LOOK_AGAIN_SECONDS)):
        pid = running_pid(places)
        if pid is not None and (spawned is None or pid == spawned):
            return pid
        if spawned is not None and not is_running(spawned):
            raise Unavailable("The host program ended right after it started", hint=log_hint(places.log))
        time.sleep(LOOK_AGAIN_SECONDS)
    raise Unavailable("The host program does not start", hint=log_hint(places.log))


def stop(places: HostPlaces) -> bool:
    """Stop the host program, now and at boot. Guests keep running. False: it was not running."""
    pid = running_pid(places)
    path = unit.UNITS / UNIT
    if unit.is_possible() and path.exists():
        unit.systemctl("disable", "--now", UNIT)
        path.unlink(missing_ok=True)
        unit.systemctl("daemon-reload")
    if pid is not None:
        end(pid)
    places.pid.unlink(missing_ok=True)
    return pid is not None


def unit_text(places: HostPlaces, python: str = sys.executable) -> str:
    return TEXT.format(
        home=unit.percent(str(places.home)),
        engines=" ".join(unit.ENGINES),
        python=unit.quoted(python).replace("$", "$$"),
        environment=unit.quoted(f"TERA_HOME={places.home}"),
        log=unit.percent(str(places.log)),
    )


def _start_unit(places: HostPlaces) -> None:
    places.log.touch(mode=0o600)
    put(unit.UNITS / UNIT, unit_text(places).encode(), mode=0o644)
    unit.systemctl("daemon-reload")
    unit.systemctl("reset-failed", UNIT, must=False)
    unit.systemctl("enable", UNIT)
    unit.systemctl("restart", UNIT)
