"""SSH of guests, as seen from the host: creates host keys, and checks whether a guest's SSH server answers."""

import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from teraflock.drivers.lxd.guest import HostKey

PORT: Final = 22
CONNECT_SECONDS_MAX: Final = 0.1
RETRY_SECONDS: Final = 0.01


def new_host_key() -> HostKey:
    with tempfile.TemporaryDirectory(prefix="tera-key-") as folder:
        path = Path(folder) / "key"
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
        public = path.with_suffix(".pub").read_text("ascii").strip()
        return HostKey(path.read_text("ascii"), public)


def answers_ssh(address: str, seconds_max: float) -> bool:
    """Check whether an SSH server answers. Retries until `seconds_max` has passed."""
    until = time.monotonic() + seconds_max
    while (left := until - time.monotonic()) > 0:
        try:
            # If the first packet is lost during boot, TCP repeats it after one second. Connect again sooner.
            with socket.create_connection(
                (address, PORT), timeout=min(left, CONNECT_SECONDS_MAX)
            ) as connection:
                connection.settimeout(left)
                return connection.recv(4) == b"SSH-"
        except OSError:
            time.sleep(RETRY_SECONDS)
    return False
