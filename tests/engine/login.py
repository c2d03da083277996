"""Log in as a tenant does: with the real `ssh`, a key of the test, and only the host key that the driver
reported."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from teraflock.drivers.lxd.ssh import new_host_key


class Login:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        key = new_host_key()  # any key pair works
        self.public_key = key.public
        self._private = folder / "login"
        self._private.write_text(key.private)
        self._private.chmod(0o600)

    def words(self, address: str, port: int, host_key: str, *command: str) -> list[str]:
        known = self._folder / f"known-{address}-{port}"
        known.write_text(f"{address if port == 22 else f'[{address}]:{port}'} {host_key}\n")
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(known),
            "GlobalKnownHostsFile": "/dev/null",
            "IdentitiesOnly": "yes",
            "ConnectTimeout": "5",
        }
        options_given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return [
            "ssh", "-F", "none", "-i", str(self._private), "-p", str(port), *options_given, f"root@{address}", *command,
        ]  # fmt: skip

    def run(
        self, address: str, port: int, host_key: str, *command: str, before: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        words = [*before, *self.words(address, port, host_key, *command)]
        return subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
