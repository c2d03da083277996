"""The WebSocket client against an engine that answers at once and closes, as it does after a short command."""

import socket
import threading
from pathlib import Path

from teraflock.drivers.lxd.websocket import BINARY, CLOSE, PING, TEXT, WebSocket

WAIT_SECONDS_MAX = 30


def unmasked(content: bytes, kind: int) -> bytes:
    return bytes([0x80 | kind, len(content)]) + content


def connected(path: Path, *frames: bytes) -> WebSocket:
    """A client of an engine that has sent these frames and closed its end."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)

    def serve() -> None:
        peer, _ = listener.accept()
        asked = b""
        while b"\r\n\r\n" not in asked:
            asked += peer.recv(4096)
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + b"".join(frames))
        peer.close()

    engine = threading.Thread(target=serve)
    engine.start()
    client = WebSocket(path, "/", seconds_max=WAIT_SECONDS_MAX)
    engine.join()
    listener.close()
    return client


def test_output_is_read_although_the_ping_before_it_cannot_be_answered(tmp_path: Path) -> None:
    frames = unmasked(b"keepalive", PING), unmasked(b"output", BINARY), unmasked(b"", TEXT)
    client = connected(tmp_path / "socket", *frames)
    assert [client.receive() for _ in range(3)] == [(BINARY, b"output"), (TEXT, b""), (CLOSE, b"")]
    client.close()


def test_a_frame_that_breaks_off_is_the_end(tmp_path: Path) -> None:
    client = connected(tmp_path / "socket", unmasked(b"output", BINARY)[:-1])
    assert client.receive() == (CLOSE, b"")
    client.close()
