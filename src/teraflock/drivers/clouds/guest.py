"""What a rented machine does at its first boot: host key, SSH keys, image, user-data and command. Pure.

The provider and the guest can read these files, so they contain nothing of the account: only the machine's own host
key, public keys, and what the tenant gave.
"""

import base64
import json
from shlex import join, quote
from typing import Final

from teraflock.drivers.clouds.images import JUPYTER_UNIT, install_program, jupyter_program
from teraflock.drivers.clouds.keys import KeyPair
from teraflock.instance.driver import Machine

FOLDER: Final = "/var/lib/teraflock"
RUN: Final = f"{FOLDER}/run"
ENVIRONMENT: Final = f"{FOLDER}/environment"
RUN_SCRIPT: Final = f"""#!/bin/sh
# run NAME: run the program NAME once in /root, with its output in NAME.log and its exit code in NAME.exit. Exit with
# that code; 1 if it began earlier and has not ended
at={FOLDER}/$1
mkdir "$at.began" 2> /dev/null || exit "$(cat "$at.exit" 2> /dev/null || echo 1)"
export HOME=/root LANG=C.UTF-8
[ "$1" = image ] || . {ENVIRONMENT}
(cd /root && exec "$at") > "$at.log" 2>&1 < /dev/null
code=$?
echo $code > "$at.exit.new"
mv "$at.exit.new" "$at.exit"
exit $code
"""
JUPYTER_UNIT_PATH: Final = "/etc/systemd/system/teraflock-jupyter.service"
JUPYTER_TOKEN: Final = f"{FOLDER}/jupyter-token"
JUPYTER_STARTS: Final = f"""if [ -d /run/systemd/system ]; then
    systemctl daemon-reload && systemctl enable --now teraflock-jupyter.service
else
    {FOLDER}/jupyter > {FOLDER}/jupyter.log 2>&1 &
fi"""
"""A virtual machine starts it at every boot by itself; a container runs its first-boot script at every start."""
STATE_SCRIPT: Final = (
    f"cd {FOLDER} && {{ cat NAME.exit 2>/dev/null || echo -; }} && tail -c LIMIT NAME.log 2>/dev/null; true"
)
LOG_BYTES_MAX: Final = 1 << 20


def cloud_config(machine: Machine, host: KeyPair, login_key: str) -> str:
    """A cloud-init configuration. JSON is valid YAML, and needs no quoting rules of its own."""
    config = {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],
        "ssh_keys": {"ed25519_private": host.private, "ed25519_public": host.public},
        "ssh_authorized_keys": [login_key, *machine.authorized_keys],
        "disable_root": True,
        "ssh_pwauth": False,
        "write_files": [
            {
                "path": path,
                "content": _encoded(text),
                "encoding": "b64",
                "permissions": "0700",
                "owner": "root:root",
            }
            for path, text in _files(machine).items()
        ],
        "runcmd": [["sh", "-c", line] for line in _starts(machine)],
    }
    return f"#cloud-config\n{json.dumps(config, ensure_ascii=True)}\n"


def script(machine: Machine, host: KeyPair, login_key: str) -> str:
    """The same as a shell script that root runs at every start of a container."""
    keys = "\n".join([login_key, *machine.authorized_keys])
    lines = [
        "#!/bin/sh",
        f"mkdir -p {FOLDER} /root/.ssh && chmod 700 {FOLDER} /root/.ssh",
        _written("/root/.ssh/authorized_keys", keys + "\n", "600"),
        "rm -f /etc/ssh/ssh_host_*",
        _written("/etc/ssh/ssh_host_ed25519_key", host.private, "600"),
        _written("/etc/ssh/ssh_host_ed25519_key.pub", host.public + "\n", "644"),
        "pkill -HUP -x sshd || service ssh restart || true",
    ]
    return "\n".join(lines) + "\n" + programs_script(machine)


def programs_script(machine: Machine) -> str:
    """The part of the script that runs programs: all that a machine needs which has its keys already."""
    written = [_written(path, text, "700") for path, text in _files(machine).items()]
    return "\n".join([f"mkdir -p {FOLDER}", *written, *_starts(machine)]) + "\n"


def runs_programs(machine: Machine) -> bool:
    return bool(_starts(machine))


def run_again_script(number: int) -> str:
    """A script that runs the command for the run with a number, once, whatever an earlier run left."""
    at = f"{FOLDER}/command"
    return (
        f'[ "$(cat {at}.run 2> /dev/null || echo 0)" = {number} ] && exit\n'
        f"rm -rf {at}.began {at}.exit {at}.log && echo {number} > {at}.run && {_in_background(f'{RUN} command')}\n"
    )


def state_command(name: str) -> tuple[str, ...]:
    """A command that prints the exit code of a program, or `-`, and then the end of its log."""
    text = STATE_SCRIPT.replace("NAME", name).replace("LIMIT", str(LOG_BYTES_MAX))
    return ("sh", "-c", text)


def read_state(output: bytes) -> tuple[int | None, bytes]:
    """The exit code, or None while it runs, and the log."""
    first, _, log = output.partition(b"\n")
    return (int(first) if first.strip().isdigit() else None), log


def _programs(machine: Machine) -> dict[str, str]:
    """Each runs once, in this order: user-data needs the image, and the command may need what user-data installs."""
    command = f"#!/bin/sh\nexec {join(machine.command)}\n" if machine.command else ""
    found = {"image": install_program(machine), "user-data": machine.user_data, "command": command}
    return {name: text for name, text in found.items() if text}


def _files(machine: Machine) -> dict[str, str]:
    """The files of the first boot, for root only."""
    found = {f"{FOLDER}/{name}": text for name, text in _programs(machine).items()}
    if jupyter := jupyter_program(machine, JUPYTER_TOKEN):
        found[JUPYTER_TOKEN] = machine.jupyter_token
        found[f"{FOLDER}/jupyter"] = jupyter
        found[JUPYTER_UNIT_PATH] = JUPYTER_UNIT.replace("PROGRAM", f"{FOLDER}/jupyter")
    exports = "".join(f"export {name}={quote(text)}\n" for name, text in machine.environment.items())
    return {RUN: RUN_SCRIPT, ENVIRONMENT: exports, **found}


def _starts(machine: Machine) -> list[str]:
    """One line that runs everything in the background. Without its image, nothing else runs."""
    runs = [f"{RUN} {name}" for name in _programs(machine)]
    if install_program(machine):
        runs[0] += " || exit 1"
        runs[1:1] = [JUPYTER_STARTS] * bool(machine.jupyter_token)
    return [_in_background("\n".join(runs))] if runs else []


def _in_background(text: str) -> str:
    return f"setsid sh -c {quote(text)} < /dev/null > /dev/null 2>&1 &"


def _encoded(content: str) -> str:
    return base64.b64encode(content.encode("utf-8", "surrogateescape")).decode("ascii")


def _written(path: str, content: str, mode: str) -> str:
    return f"echo {_encoded(content)} | base64 -d > {quote(path)} && chmod {mode} {quote(path)}"
