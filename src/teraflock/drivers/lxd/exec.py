"""Runs a command in a guest: arguments, input, separate stdout and stderr, and the exit code.

Output beyond a limit is read and dropped, so a guest cannot fill the host's memory or disk. A command that
exceeds its time limit is killed and returns exit code 124, like `timeout`.
"""

import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from teraflock.drivers.lxd.guest import ENVIRONMENT
from teraflock.drivers.lxd.rest import LxdClient, LxdOperation
from teraflock.drivers.lxd.websocket import BINARY, CLOSE, TEXT, WebSocket
from teraflock.instance.driver import Ran
from teraflock.instance.engine_errors import EngineRefused

OUTPUT_BYTES_MAX: Final = 4 << 20
TOO_LONG: Final = 124
END_SECONDS_MAX: Final = 10
_CHUNK: Final = 1 << 16
_KILL: Final = msgspec.json.encode({"command": "signal", "signal": 9})
_NOT_RUN: Final = {"Command not found": 127, "Command not executable": 126}
"""Exit codes, as in a shell, for errors that the engine reports as its own."""


def run(
    client: LxdClient,
    name: str,
    command: Sequence[str],
    *,
    stdin: bytes,
    seconds_max: float,
) -> Ran:
    asked = {
        "command": list(command),
        "environment": environment_of(client, name),
        "cwd": "/root",
        "wait-for-websocket": True,
        "interactive": False,
    }
    begun = client.begin("instances", name, "exec", body=asked)
    lines = _Lines(client, begun)
    try:
        lines.feed(stdin)
        in_time = lines.ended(seconds_max)
        if not in_time:
            lines.kill()
            lines.ended(END_SECONDS_MAX)
        code = _exit_code(client, begun.id) if in_time else TOO_LONG
    finally:
        lines.close()
    return Ran(exit_code=code, stdout=lines.output(1), stderr=lines.output(2), timed_out=not in_time)


def environment_of(client: LxdClient, name: str) -> dict[str, str]:
    """The variables of a program in a guest: the usual ones, and those that the instance was launched with."""
    config = client.get("instances", name)["config"]
    own = msgspec.json.decode(config.get(ENVIRONMENT, "{}"), type=dict[str, str])
    return {"HOME": "/root", "USER": "root", "LANG": "C.UTF-8", **own}


class _Lines:
    """The four sockets of one command. Nothing runs in the guest until all are connected."""

    def __init__(self, client: LxdClient, begun: LxdOperation) -> None:
        secrets: dict[str, str] = (begun.metadata or {})["fds"]
        self._sockets: dict[str, WebSocket] = {}
        self._outputs: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        try:
            for line in ("control", "0", "1", "2"):
                target = client.target("operations", begun.id, "websocket", secret=secrets[line])
                self._sockets[line] = WebSocket(client.socket_path, target, seconds_max=END_SECONDS_MAX)
        except BaseException:
            self.close()
            raise
        for socket in self._sockets.values():
            socket.wait_forever()
        self._readers = [
            threading.Thread(target=self._read, args=(number,), daemon=True) for number in (1, 2)
        ]
        for reader in self._readers:
            reader.start()

    def feed(self, stdin: bytes) -> None:
        """Send the input and an empty text frame, which marks its end. Runs on a thread, because the guest
        may not read it."""
        threading.Thread(target=self._write, args=(stdin,), daemon=True).start()

    def ended(self, seconds_max: float) -> bool:
        """Wait for the end of both outputs."""
        until = time.monotonic() + seconds_max
        for reader in self._readers:
            reader.join(max(0.0, until - time.monotonic()))
        return not any(reader.is_alive() for reader in self._readers)

    def kill(self) -> None:
        self._sockets["control"].send(_KILL, TEXT)

    def output(self, number: int) -> bytes:
        return bytes(self._outputs[number])

    def close(self) -> None:
        for socket in self._sockets.values():
            socket.shut()
            socket.close()

    def _read(self, number: int) -> None:
        kept = self._outputs[number]
        socket = self._sockets[str(number)]
        while True:
            kind, content = socket.receive()
            if kind == CLOSE or (kind == TEXT and not content):
                return
            if kind == BINARY:
                kept += content[: OUTPUT_BYTES_MAX - len(kept)]

    def _write(self, stdin: bytes) -> None:
        try:
            for place in range(0, len(stdin), _CHUNK):
                self._sockets["0"].send(stdin[place : place + _CHUNK])
            self._sockets["0"].send(b"", TEXT)
        except OSError:
            return  # the command ended before it read all of its input


def _exit_code(client: LxdClient, operation: str) -> int:
    try:
        result: dict[str, Any] = client.wait(operation, seconds_max=END_SECONDS_MAX)
    except EngineRefused as error:
        code = _NOT_RUN.get(str(error.context.get("engine")))
        if code is None:
            raise
        return code
    return int(result["return"])
