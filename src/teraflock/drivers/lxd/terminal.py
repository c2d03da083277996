"""A shell in a guest on a pseudo-terminal, over the engine's websockets."""

from typing import Final

import msgspec

from teraflock.drivers.lxd.exec import environment_of
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.websocket import BINARY, CLOSE, TEXT, WebSocket

CONNECT_SECONDS_MAX: Final = 10
_SHELL: Final = ("/bin/sh", "-c", 'exec "$(command -v bash || echo /bin/sh)" -l')


class LxdTerminal:
    def __init__(
        self,
        client: LxdClient,
        name: str,
        *,
        columns: int,
        rows: int,
    ) -> None:
        asked = {
            "command": list(_SHELL),
            "environment": {"TERM": "xterm-256color", **environment_of(client, name)},
            "cwd": "/root",
            "wait-for-websocket": True,
            "interactive": True,
            "width": columns,
            "height": rows,
        }  # fmt: skip
        begun = client.begin("instances", name, "exec", body=asked)
        secrets: dict[str, str] = (begun.metadata or {})["fds"]
        self._sockets: list[WebSocket] = []
        try:
            for line in ("0", "control"):
                target = client.target("operations", begun.id, "websocket", secret=secrets[line])
                self._sockets.append(WebSocket(client.socket_path, target, seconds_max=CONNECT_SECONDS_MAX))
        except BaseException:
            self.close()
            raise
        self._data, self._control = self._sockets
        for socket in self._sockets:
            socket.wait_forever()

    def read(self) -> bytes:
        while True:
            try:
                kind, content = self._data.receive()
            except OSError:  # closed by `close`
                return b""
            if kind == CLOSE or (kind == TEXT and not content):
                return b""
            if kind == BINARY and content:
                return content

    def write(self, content: bytes) -> None:
        try:
            self._data.send(content)
        except OSError:
            return  # the shell has ended: `read` says so

    def resize(self, columns: int, rows: int) -> None:
        size = {"command": "window-resize", "args": {"width": str(columns), "height": str(rows)}}
        try:
            self._control.send(msgspec.json.encode(size), TEXT)
        except OSError:
            return

    def close(self) -> None:
        for socket in self._sockets:
            socket.shut()
            socket.close()
