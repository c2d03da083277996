"""The server as a unit of systemd, where systemd runs this machine and we are root: it comes back after a reboot.

What holds: the unit's file is ours alone and names one home; what the environment says to the server lies in a file for
its owner, never in the unit, which everybody may read; a server that was started in another way is left as it is.
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
"""Is there if and only if systemd is the first process."""
UNITS: Final = Path("/etc/systemd/system")
ENGINES: Final = (
    "lxd.socket", "lxd.service", "incus.socket", "incus.service", "snap.lxd.daemon.unix.socket",
    "snap.lxd.daemon.service",
)  # fmt: skip
COMMAND_SECONDS_MAX: Final = 90
TEXT: Final = """# Written by `make up`, removed by `make purge`.
[Unit]
Description=Teraflock, the cloud of {home}
After=network.target {engines}
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={python} -m teraflock serve --prepare
Environment={environment}
EnvironmentFile=-{environment_file}
StandardOutput=append:{log}
StandardError=append:{log}
Restart=on-failure
RestartSec=2
# an engine of our own and its guests outlive the server
KillMode=process
Delegate=yes
TasksMax=infinity
LimitNOFILE=1048576

[Install]
WantedBy=multi-user.target
"""


def is_possible(booted: Path = BOOTED) -> bool:
    return os.geteuid() == 0 and booted.is_dir()


def name(places: Places) -> str:
    """`teraflock.service` for the usual home; another home has a name of its own."""
    usual = Path("~/.local/share/teraflock").expanduser()
    return "teraflock.service" if places.home == usual else f"teraflock-{places.engine.name}.service"


def path(places: Places, units: Path = UNITS) -> Path:
    return units / name(places)


def text(places: Places, python: str = sys.executable) -> str:
    return TEXT.format(
        home=_percent(str(places.home)),
        engines=" ".join(ENGINES),
        python=_quoted(python).replace("$", "$$"),
        environment=_quoted(f"TERA_HOME={places.home}"),
        environment_file=_percent(str(places.environment)),
        log=_percent(str(places.log)),
    )


def environment_text(environment: Mapping[str, str]) -> str:
    """What the environment of `make up` says to the server, and where programs are found."""
    names = ["PATH", "LXD_DIR", "INCUS_DIR", *map(variable, Settings.__struct_fields__)]
    return "".join(f"{each}={_in_file(environment[each])}\n" for each in names if environment.get(each))


def start(places: Places, environment: Mapping[str, str] = os.environ) -> None:
    """Write it if it is not as it should be, and start it now and at every boot."""
    put(places.environment, environment_text(environment).encode(), mode=0o600)
    places.log.touch(mode=0o600)
    put(path(places), text(places).encode(), mode=0o644)
    _systemctl("daemon-reload")
    _systemctl("reset-failed", name(places), must=False)
    _systemctl("enable", "--now", name(places))


def stop(places: Places) -> None:
    """Stop it, and start it no more at boot. Where there is none, nothing is done."""
    if is_possible() and path(places).exists():
        _systemctl("disable", "--now", name(places))


def remove(places: Places) -> None:
    if path(places).exists() and os.geteuid() == 0:
        stop(places)
        path(places).unlink(missing_ok=True)
        if is_possible():
            _systemctl("daemon-reload")


def _systemctl(*words: str, must: bool = True) -> None:
    command = ["systemctl", "--quiet", *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS_MAX
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"systemd does not do `{' '.join(words)}`", hint=str(error)) from None
    if must and done.returncode:
        raise Unavailable(
            f"systemd refuses `{' '.join(words)}`", hint=(done.stderr.strip().splitlines() or [""])[-1]
        )


def _percent(text: str) -> str:
    return text.replace("%", "%%")  # systemd puts other words for `%h` and the like


def _quoted(text: str) -> str:
    """One word in a unit file, whatever is in it."""
    return '"' + _percent(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _in_file(value: str) -> str:
    """One word in an environment file: there nothing stands for other words, but quotes and backslashes do count."""
    escaped = "".join(f"\\{each}" if each in '\\"`$' else each for each in value)
    return f'"{escaped}"'
