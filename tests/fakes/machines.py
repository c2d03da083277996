"""Machines of a fake cloud that run real programs: each has folders of its own in place of /root, /data and /var/lib.

The programs run on this computer in a mount namespace, so the server's own programs for guests are used as they are.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from tests.fakes.base import FakeCloud, FakeMachine
from tests.fakes.guest import FakeLink

from teraflock.drivers.clouds.channel import GuestChannel, ProcessChannel
from teraflock.drivers.clouds.files import PROGRAM
from teraflock.drivers.clouds.keys import KeyPair
from teraflock.instance.driver import Endpoint, Ran
from teraflock.run.guest import program_text

OWN = ("root", "var/lib")
ENTER = " && ".join([*(f'mount --bind "$0/{each}" /{each}' for each in OWN), 'exec "$@"'])


class MachineLink(FakeLink):
    def __init__(self, cloud: FakeCloud, folder: Path) -> None:
        super().__init__(cloud)
        self._folder = folder
        self.received_bytes = 0
        """What the server read over SSH."""
        self.told: list[str] = []
        """Every word of every command, as other processes of the machine could see them."""

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
        answered = super().run(at, user, host_key, key, command, stdin=stdin, seconds_max=seconds_max)
        machine = self._up(at)
        if answered is None or machine is None or program_text() not in command:
            return answered
        self.told += command
        done = subprocess.run(
            self._words(machine, command), input=stdin, capture_output=True, timeout=seconds_max, check=False
        )
        self.received_bytes += len(done.stdout)
        return Ran(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def open(
        self, at: Endpoint, user: str, host_key: str, key: KeyPair, command: Sequence[str]
    ) -> GuestChannel:
        machine = self._up(at)
        assert machine is not None
        assert PROGRAM in command
        process = subprocess.Popen(
            self._words(machine, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return _Counting(process, self)

    def power_off(self, machine: FakeMachine) -> None:
        """End the machine and every program that the server started in it."""
        self.cloud.end(machine.id)
        for path in (self._folder / machine.id / "var/lib").glob("teraflock/runs/*/group"):
            with suppress(ProcessLookupError, ValueError):
                os.killpg(int(path.read_text()), signal.SIGKILL)

    def path(self, machine: FakeMachine, path: str) -> Path:
        return self._folder / machine.id / path.lstrip("/")

    def close(self) -> None:
        for machine in list(self.cloud.machines.values()):
            self.power_off(machine)

    def _words(self, machine: FakeMachine, command: Sequence[str]) -> list[str]:
        at = self._folder / machine.id
        for each in OWN:
            (at / each).mkdir(parents=True, exist_ok=True)
        inside = [*command][[*command].index("python3") :]
        return ["unshare", "--map-root-user", "--mount", "sh", "-c", ENTER, str(at), *inside]


class _Counting(ProcessChannel):
    def __init__(self, process: "subprocess.Popen[bytes]", link: MachineLink) -> None:
        super().__init__(process)
        self._link = link

    def receive(self, seconds_max: float) -> bytes:
        piece = super().receive(seconds_max)
        self._link.received_bytes += len(piece)
        return piece


def check_namespaces() -> None:
    done = subprocess.run(["unshare", "--map-root-user", "--mount", "true"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mount namespaces are not allowed here")
