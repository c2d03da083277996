"""The server as a systemd unit, if systemd runs this machine and we are root: it then starts at every boot.

Invariants: the unit file is ours alone and names one home. The environment of the server is in a file that only its
owner can read, never in the unit, which everybody can read. A server that was started another way is left alone.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from teraflock.app.files import put
from teraflock.app.installation.places import Places
from teraflock.app.settings import Settings, variable
from teraflock.base.errors import Unavailable

BOOTED: Final = Path("/run/systemd/system")
"""Exists if and only if systemd is process 1."""
UNITS: Final = Path("/etc/systemd/system")
ENGINES: Final = (
    "lxd.socket", "lxd.service", "incus.socket", "incus.service", "snap.lxd.daemon.unix.socket",
    "snap.lxd.daemon.service",
)  # fmt: skip
COMMAND_SECONDS_MAX: Final = 90
SERVICE: Final = """StandardOutput=append:{log}
StandardError=append:{log}
RestartSec=2
# our own engine and its guests outlive this process
KillMode=process
Delegate=yes
TasksMax=infinity
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
"""
TEXT: Final = (
    """# Written by `make up`, removed by `make purge`.
[Unit]
Description=Teraflock server for {home}
After=network.target {engines}
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={python} -m teraflock serve --prepare
Environment={environment}
EnvironmentFile=-{environment_file}
Restart=on-failure
"""
    + SERVICE
)


def is_possible(booted: Path = BOOTED) -> bool:
    return os.geteuid() == 0 and booted.is_dir()


def name(places: Places) -> str:
    """`teraflock.service` for the default home. Other homes have different names."""
    usual = Path("~/.local/share/teraflock").expanduser()
    return "teraflock.service" if places.home == usual else f"teraflock-{places.engine.name}.service"


def path(places: Places, units: Path = UNITS) -> Path:
    return units / name(places)


def text(places: Places, python: str = sys.executable) -> str:
    return TEXT.format(
        home=percent(str(places.home)),
        engines=" ".join(ENGINES),
        python=quoted(python).replace("$", "$$"),
        environment=quoted(f"TERA_HOME={places.home}"),
        environment_file=percent(str(places.environment)),
        log=percent(str(places.log)),
    )


def environment_text(environment: Mapping[str, str]) -> str:
    """The Teraflock variables from the environment of `make up`, and PATH."""
    names = ["PATH", "LXD_DIR", "INCUS_DIR", *map(variable, Settings.__struct_fields__)]
    return "".join(f"{each}={_in_file(environment[each])}\n" for each in names if environment.get(each))


def start(places: Places, environment: Mapping[str, str] = os.environ) -> None:
    """Write the unit if it differs, start it, and enable it at boot."""
    put(places.environment, environment_text(environment).encode(), mode=0o600)
    places.log.touch(mode=0o600)
    put(path(places), text(places).encode(), mode=0o644)
    systemctl("daemon-reload")
    systemctl("reset-failed", name(places), must=False)
    systemctl("enable", "--now", name(places))


def stop(places: Places) -> None:
    """Stop the unit and disable it at boot. Does nothing if there is no unit."""
    if is_possible() and path(places).exists():
        systemctl("disable", "--now", name(places))


def remove(places: Places) -> None:
    if path(places).exists() and os.geteuid() == 0:
        stop(places)
        path(places).unlink(missing_ok=True)
        if is_possible():
            systemctl("daemon-reload")


def systemctl(*words: str, must: bool = True) -> None:
    command = ["systemctl", "--quiet", *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS_MAX
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"Could not run `{' '.join(words)}`", hint=str(error)) from None
    if must and done.returncode:
        raise Unavailable(
            f"systemd refused `{' '.join(words)}`", hint=(done.stderr.strip().splitlines() or [""])[-1]
        )


def percent(text: str) -> str:
    return text.replace("%", "%%")  # systemd would expand `%h` and the like


def quoted(text: str) -> str:
    """Quote any text as one word in a unit file."""
    return '"' + percent(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _in_file(value: str) -> str:
    """Quote any text as one word in an environment file. Only quotes and backslashes are special there."""
    escaped = "".join(f"\\{each}" if each in '\\"`$' else each for each in value)
    return f'"{escaped}"'
