"""A real SSH server on this machine, as a rented machine has one: with a given host key and login key."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from teraflock.drivers.clouds.keys import KeyPair
from teraflock.instance.driver import Endpoint

SECONDS_MAX = 20.0


@contextlib.contextmanager
def ssh_server(folder: Path, host: KeyPair, login: KeyPair) -> Iterator[Endpoint]:
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("`sshd` is not installed: apt-get install openssh-server")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True, mode=0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    key, authorized = folder / "host_key", folder / "authorized_keys"
    key.touch(0o600)
    key.write_text(host.private)
    authorized.write_text(login.public + "\n")
    words = [program, "-D", "-e", "-f", "/dev/null", "-h", str(key), "-p", str(port)]
    settings = {
        "ListenAddress": "127.0.0.1", "AuthorizedKeysFile": str(authorized), "StrictModes": "no", "UsePAM": "no",
        "PidFile": "none", "PermitRootLogin": "prohibit-password",
        "SetEnv": f"HOME={folder}",  # so that no `.bashrc` of root is read
    }  # fmt: skip
    words += [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    with (folder / "sshd.log").open("wb") as log, subprocess.Popen(words, stderr=log) as server:
        try:
            _wait_for(port, server, folder / "sshd.log")
            yield Endpoint("127.0.0.1", port)
        finally:
            server.terminate()


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    over_at = time.monotonic() + SECONDS_MAX
    while time.monotonic() < over_at and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    pytest.fail(f"sshd does not answer: {log.read_text()}")
