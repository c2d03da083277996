"""A WebSocket client (RFC 6455) over the Unix socket, reduced to what the engine's `exec` needs."""

import base64
import os
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from teraflock.drivers.lxd import errors
from teraflock.drivers.lxd.rest import unix_socket

TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10
_CONTINUED: Final = 0
_SWITCHING: Final = b"HTTP/1.1 101"
_SHORT_MAX: Final = 125
_LENGTH_16: Final = 126
_LENGTH_64: Final = 127
FRAME_BYTES_MAX: Final = 1 << 24
"""The engine sends a few kilobytes at a time. A larger frame is a protocol error."""


class WebSocket:
    def __init__(self, socket_path: Path, target: str, *, seconds_max: float) -> None:
        self._received = b""
        self._sending = threading.Lock()
        """A pong must not come into the middle of another frame."""
        try:
            self._socket = unix_socket(socket_path, seconds_max)
        except OSError as error:
            raise errors.down(str(error)) from error
        try:
            self._handshake(target)
        except OSError as error:
            self._socket.close()
            raise errors.down(str(error)) from error
        except BaseException:
            self._socket.close()
            raise

    def send(self, content: bytes, kind: int = BINARY) -> None:
        with self._sending:
            self._socket.sendall(frame(content, kind, os.urandom(4)))

    def receive(self) -> tuple[int, bytes]:
        """Return the kind and content of the next frame; CLOSE at the end of the connection. Answers pings."""
        while True:
            head = self._exactly(2)
            if head is None:
                return CLOSE, b""
            kind, length = head[0] & 0x0F, head[1] & 0x7F
            if length == _LENGTH_16:
                length = struct.unpack(">H", self._exactly(2) or b"\0\0")[0]
            elif length == _LENGTH_64:
                length = struct.unpack(">Q", self._exactly(8) or bytes(8))[0]
            if length > FRAME_BYTES_MAX:
                raise errors.down(f"frame of {length} bytes is too large")
            content = self._exactly(length)
            if content is None:
                return CLOSE, b""
            if kind != PING:
                return (BINARY if kind == _CONTINUED else kind), content
            with suppress(
                OSError
            ):  # the engine has closed its end, but what it sent before is still to be read
                self.send(content, PONG)

    def close(self) -> None:
        self._socket.close()

    def shut(self) -> None:
        """Wake threads that wait in `receive`."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # already closed: no thread waits

    def wait_forever(self) -> None:
        self._socket.settimeout(None)

    def _handshake(self, target: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            f"GET {target} HTTP/1.1",
            "Host: engine",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
        )
        self._socket.sendall("\r\n".join((*lines, "", "")).encode())
        while b"\r\n\r\n" not in self._received:
            more = self._socket.recv(4096)
            if not more:
                raise errors.down("the engine closed the connection")
            self._received += more
        answer, _, self._received = self._received.partition(b"\r\n\r\n")
        if not answer.startswith(_SWITCHING):
            raise errors.down(answer.splitlines()[0].decode("latin-1"))

    def _exactly(self, size: int) -> bytes | None:
        while len(self._received) < size:
            try:
                more = self._socket.recv(65536)
            except (ConnectionError, TimeoutError):
                return None
            if not more:
                return None
            self._received += more
        content, self._received = self._received[:size], self._received[size:]
        return content


def frame(content: bytes, kind: int, mask: bytes) -> bytes:
    """Encode one complete frame, masked as required for clients."""
    size = len(content)
    if size <= _SHORT_MAX:
        length = bytes([0x80 | size])
    elif size < 1 << 16:
        length = bytes([0x80 | _LENGTH_16]) + struct.pack(">H", size)
    else:
        length = bytes([0x80 | _LENGTH_64]) + struct.pack(">Q", size)
    return bytes([0x80 | kind]) + length + mask + _masked(content, mask)


def _masked(content: bytes, mask: bytes) -> bytes:
    whole = int.from_bytes((mask * (len(content) // 4 + 1))[: len(content)], "big")
    return (int.from_bytes(content, "big") ^ whole).to_bytes(len(content), "big")
