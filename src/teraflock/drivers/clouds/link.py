"""Reaches rented machines with the `ssh` program. The host key must be the expected one."""

import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import join
from typing import Final, Protocol

from teraflock.drivers.clouds.channel import GuestChannel, ProcessChannel, finished
from teraflock.drivers.clouds.keys import KeyPair
from teraflock.instance.driver import Endpoint, Ran
from teraflock.instance.engine_errors import EngineDown

CONNECT_SECONDS_MAX: Final = 5
OUTPUT_BYTES_MAX: Final = 8 << 20
SSH_FAILED: Final = 255
TIMED_OUT: Final = 124


class Link(Protocol):
    def host_key(self, at: Endpoint) -> str:
        """The key that the machine shows now, unverified; empty: it does not answer."""
        ...

    def run(
        self,
        at: Endpoint,
        user: str,
        host_key: str,
        key: KeyPair,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds_max: float,
    ) -> Ran | None:
        """Run a command. None: the machine does not answer, or shows another host key."""
        ...

    def open(
        self, at: Endpoint, user: str, host_key: str, key: KeyPair, command: Sequence[str]
    ) -> GuestChannel:
        """Start a command and talk to it. If the machine does not answer, the channel ends without output."""
        ...


class SshLink:
    def host_key(self, at: Endpoint) -> str:
        scan = ["ssh-keyscan", "-T", "5", "-t", "ed25519", "-p", str(at.port), "--", at.address]
        try:
            done = subprocess.run(scan, capture_output=True, timeout=CONNECT_SECONDS_MAX, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        lines = [line.split() for line in done.stdout.decode("ascii", "replace").splitlines()]
        return next((f"{words[1]} {words[2]}" for words in lines if len(words) >= 3), "")

    def run(
        self,
        at: Endpoint,
        user: str,
        host_key: str,
        key: KeyPair,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds_max: float,
    ) -> Ran | None:
        with tempfile.TemporaryDirectory(prefix="tera-ssh-") as folder:
            words = _words(Path(folder), at, user, host_key, key, command)
            return _done(words, stdin, seconds_max)

    def open(
        self, at: Endpoint, user: str, host_key: str, key: KeyPair, command: Sequence[str]
    ) -> GuestChannel:
        with ExitStack() as kept:
            folder = kept.enter_context(tempfile.TemporaryDirectory(prefix="tera-ssh-"))
            process = _started(_words(Path(folder), at, user, host_key, key, command), subprocess.DEVNULL)
            return ProcessChannel(process, clean_up=kept.pop_all().close)


def _words(
    folder: Path, at: Endpoint, user: str, host_key: str, key: KeyPair, command: Sequence[str]
) -> list[str]:
    return [*_options(folder, at, host_key, key), f"{user}@{at.address}", "--", join(command)]


def _options(folder: Path, at: Endpoint, host_key: str, key: KeyPair) -> list[str]:
    identity, known = folder / "key", folder / "known_hosts"
    identity.touch(mode=0o600)
    identity.write_text(key.private, "ascii")
    known.write_text(f"[{at.address}]:{at.port} {host_key}\n{at.address} {host_key}\n", "ascii")
    settings = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": str(known),
        "GlobalKnownHostsFile": "/dev/null",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "ClearAllForwardings": "yes",
        "ConnectTimeout": str(CONNECT_SECONDS_MAX),
        "LogLevel": "ERROR",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-F", "/dev/null", "-T", "-i", str(identity), "-p", str(at.port), *options]


def _started(words: list[str], stderr: int) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=stderr)
    except FileNotFoundError:
        raise EngineDown("`ssh` is not installed on the server", hint="Install the OpenSSH client") from None


def _done(words: list[str], stdin: bytes, seconds_max: float) -> Ran | None:
    process = _started(words, subprocess.PIPE)
    output = finished(process, stdin, seconds_max=seconds_max, bytes_max=OUTPUT_BYTES_MAX)
    code = TIMED_OUT if output.timed_out else process.returncode
    if code == SSH_FAILED:
        return None
    return Ran(
        exit_code=code,
        stdout=bytes(output.stdout),
        stderr=bytes(output.stderr),
        timed_out=output.timed_out,
    )
