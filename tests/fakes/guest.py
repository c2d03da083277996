"""The SSH servers of a fake cloud's machines. They read the first-boot files that a machine was given."""

import base64
import json
import re
from collections.abc import Sequence
from subprocess import PIPE, Popen

from tests.fakes.base import FakeCloud, FakeMachine

from teraflock.drivers.clouds.channel import GuestChannel, ProcessChannel
from teraflock.drivers.clouds.images import JUPYTER_ANSWERS
from teraflock.drivers.clouds.keys import KeyPair
from teraflock.drivers.clouds.probe import COMMAND
from teraflock.instance.driver import Endpoint, Ran


class FakeLink:
    def __init__(self, cloud: FakeCloud) -> None:
        self.cloud = cloud
        self.exit_codes: dict[str, int] = {}
        """By machine: how its command ended."""
        self.ran: list[Sequence[str]] = []
        self.sent: dict[str, str] = {}
        """By machine: the scripts that it was sent over SSH."""
        self.image_looks = 2
        """How often a machine is asked until its image is installed."""
        self.image_codes: list[int] = []
        """How the installations of the next machines end. Empty: well."""
        self._looks: dict[str, int] = {}

    def host_key(self, at: Endpoint) -> str:
        machine = self._up(at)
        return _host_key(machine) or "ssh-ed25519 AAAAC3NzaGenerated" if machine else ""

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
        machine = self._up(at)
        if machine is None or host_key != (_host_key(machine) or "ssh-ed25519 AAAAC3NzaGenerated"):
            return None
        assert key.public in authorized(machine), "the server cannot log in"
        self.ran.append(command)
        if command[-1] == "sh":
            self.sent[machine.id] = self.sent.get(machine.id, "") + stdin.decode()
        code = int(tuple(command[-3:]) == JUPYTER_ANSWERS and not self._has_jupyter(machine))
        return Ran(exit_code=code, stdout=self._output(machine, command), stderr=b"")

    def open(
        self, at: Endpoint, user: str, host_key: str, key: KeyPair, command: Sequence[str]
    ) -> GuestChannel:
        """The command runs on this machine: only to read files that a test wrote."""
        answers = self.run(at, user, host_key, key, ("true",), seconds_max=1) is not None
        words = [*command][command.index("python3") :] if answers else ["false"]
        return ProcessChannel(Popen(words, stdin=PIPE, stdout=PIPE))

    def _up(self, at: Endpoint) -> FakeMachine | None:
        machine = self.cloud.by_address(at.address)
        return machine if machine is not None and self.cloud.is_up(machine) else None

    def _output(self, machine: FakeMachine, command: Sequence[str]) -> bytes:
        if tuple(command[-3:]) == COMMAND:
            seen = machine.gpus if machine.gpus_seen is None else machine.gpus_seen
            memory = [] if machine.cuda else [int(machine.gpu_memory_bytes * 0.97)] * seen
            return json.dumps({"cuda": machine.cuda, "memory": memory}).encode() + b"\n"
        if "169.254.169.254" in command[-1] or "termination-time" in command[-1]:
            return machine.notice.encode()
        if found := re.search(r"cat ([a-z-]+)\.exit", command[-1]):
            code = self._exit_code(machine, found[1]) if self.has_file(machine, found[1]) else None
            return b"-\n" if code is None else b"%d\nhello\n" % code
        return b""

    def has_file(self, machine: FakeMachine, name: str) -> bool:
        """Whether the machine was given a file of ours, at its first boot or over SSH."""
        given = machine.boot + self.sent.get(machine.id, "")
        return re.search(rf"/var/lib/teraflock/{name}(?![\w.-])", given) is not None

    def _exit_code(self, machine: FakeMachine, name: str) -> int | None:
        if name != "image":
            return self.exit_codes.get(machine.id)
        self._looks[machine.id] = self._looks.get(machine.id, 0) + 1
        if self._looks[machine.id] < self.image_looks:
            return None
        return self.image_codes.pop(0) if self.image_codes else 0

    def _has_jupyter(self, machine: FakeMachine) -> bool:
        is_installed = self._looks.get(machine.id, 0) >= self.image_looks
        return is_installed and self.has_file(machine, "jupyter-token") and self.has_file(machine, "jupyter")


def _host_key(machine: FakeMachine) -> str:
    if machine.host_key:
        return machine.host_key
    if machine.boot.startswith("#cloud-config"):
        return str(json.loads(machine.boot.partition("\n")[2])["ssh_keys"]["ed25519_public"])
    found = re.search(r"echo (\S+) \| base64 -d > /etc/ssh/ssh_host_ed25519_key.pub", machine.boot)
    return base64.b64decode(found[1]).decode().strip() if found else ""


def authorized(machine: FakeMachine) -> str:
    found = re.search(r"echo (\S+) \| base64 -d > /root/.ssh/authorized_keys", machine.boot)
    written = base64.b64decode(found[1]).decode() if found else ""
    if machine.boot.startswith("#cloud-config"):
        written = "\n".join(json.loads(machine.boot.partition("\n")[2])["ssh_authorized_keys"])
    return "\n".join([written, *machine.keys])
