"""What a rented machine does at its first boot: host key, SSH keys, user-data and command. Pure.

The provider and the guest can read these files, so they contain nothing of the account: only the machine's own host
key, public keys, and what the tenant gave.
"""

import base64
import json
from shlex import join, quote
from typing import Final

from teraflock.drivers.clouds.keys import KeyPair
from teraflock.instance.driver import Machine

FOLDER: Final = "/var/lib/teraflock"
RUN: Final = f"{FOLDER}/run"
RUN_SCRIPT: Final = f"""#!/bin/sh
# run NAME FILE: run FILE once, with its output in NAME.log and its exit code in NAME.exit
cd {FOLDER} || exit 1
[ -e "$1.began" ] && exit 0
: > "$1.began"
"$2" > "$1.log" 2>&1 < /dev/null
echo $? > "$1.exit.new"
mv "$1.exit.new" "$1.exit"
"""
STATE_SCRIPT: Final = (
    f"cd {FOLDER} && {{ cat NAME.exit 2>/dev/null || echo -; }} && tail -c LIMIT NAME.log 2>/dev/null; true"
)
LOG_BYTES_MAX: Final = 1 << 20


def cloud_config(machine: Machine, host: KeyPair, login_key: str) -> str:
    """A cloud-init configuration. JSON is valid YAML, and needs no quoting rules of its own."""
    files = [_file(RUN, RUN_SCRIPT), *_programs(machine)]
    config = {
        "ssh_deletekeys": True,
        "ssh_genkeytypes": [],
        "ssh_keys": {"ed25519_private": host.private, "ed25519_public": host.public},
        "ssh_authorized_keys": [login_key, *machine.authorized_keys],
        "disable_root": True,
        "ssh_pwauth": False,
        "write_files": files,
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
        *(
            _written(each["path"], _content(each), "700")
            for each in (_file(RUN, RUN_SCRIPT), *_programs(machine))
        ),
        *_starts(machine),
    ]
    return "\n".join(lines) + "\n"


def state_command(name: str) -> tuple[str, ...]:
    """A command that prints the exit code of a program, or `-`, and then the end of its log."""
    text = STATE_SCRIPT.replace("NAME", name).replace("LIMIT", str(LOG_BYTES_MAX))
    return ("sh", "-c", text)


def read_state(output: bytes) -> tuple[int | None, bytes]:
    """The exit code, or None while it runs, and the log."""
    first, _, log = output.partition(b"\n")
    return (int(first) if first.strip().isdigit() else None), log


def _programs(machine: Machine) -> list[dict[str, str]]:
    found = []
    if machine.user_data:
        found.append(_file(f"{FOLDER}/user-data", machine.user_data))
    if machine.command:
        exports = "".join(f"export {name}={quote(text)}\n" for name, text in machine.environment.items())
        found.append(
            _file(f"{FOLDER}/command", f"#!/bin/sh\ncd /root\n{exports}exec {join(machine.command)}\n")
        )
    return found


def _starts(machine: Machine) -> list[str]:
    """User-data runs before the command, which may need what it installs."""
    lines = []
    if machine.user_data:
        lines.append(f"{RUN} user-data {FOLDER}/user-data")
    if machine.command:
        lines.append(f"{RUN} command {FOLDER}/command")
    return [f"( {'; '.join(lines)} ) &"] if lines else []


def _file(path: str, content: str) -> dict[str, str]:
    encoded = base64.b64encode(content.encode("utf-8", "surrogateescape")).decode("ascii")
    return {"path": path, "content": encoded, "encoding": "b64", "permissions": "0700", "owner": "root:root"}


def _content(file: dict[str, str]) -> str:
    return base64.b64decode(file["content"]).decode("utf-8", "surrogateescape")


def _written(path: str, content: str, mode: str) -> str:
    encoded = base64.b64encode(content.encode("utf-8", "surrogateescape")).decode("ascii")
    return f"echo {encoded} | base64 -d > {quote(path)} && chmod {mode} {quote(path)}"
