"""One TLS connection that carries whole messages. Two threads may use it at once, one of them to read.

A message is its length in four bytes, then msgpack. OpenSSL does not allow two threads in one connection, so the
socket never blocks: a thread waits for it outside the lock.
"""

import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

FRAME_BYTES_MAX: Final = 64 << 20
"""Security groups of a large installation, or the output of a command."""
HEAD_BYTES: Final = 4
READ_BYTES: Final = 1 << 16
KEEPALIVE: Final = ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))


class Closed(ConnectionError):
    """The other end closed the connection, or sent something that is not a message."""


class Channel:
    def __init__(self, sock: ssl.SSLSocket, *, received_bytes_max: int = FRAME_BYTES_MAX) -> None:
        """`sock` has finished its handshake. `received_bytes_max` is for one message of the other end."""
        self._socket = sock
        self._received_bytes_max = received_bytes_max
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._read = bytearray()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
        sock.setblocking(False)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the other end's certificate."""
        return sha256(self._socket.getpeercert(binary_form=True) or b"").hexdigest()

    def send(self, message: msgspec.Struct, *, seconds_max: float) -> None:
        content = msgspec.msgpack.encode(message)
        if len(content) > FRAME_BYTES_MAX:
            raise Closed("the message is too large")
        rest = memoryview(len(content).to_bytes(HEAD_BYTES, "big") + content)
        ends_at = time.monotonic() + seconds_max
        with self._sending:  # a message is never mixed with another
            while rest:
                rest = rest[self._attempt(lambda part=rest: self._socket.send(part), ends_at) :]  # type: ignore[misc]

    def receive(self, kind: type[T], *, seconds_max: float) -> T:
        ends_at = time.monotonic() + seconds_max
        length = int.from_bytes(self._exactly(HEAD_BYTES, ends_at), "big")
        if length > self._received_bytes_max:
            raise Closed(f"the other end announced a message of {length} bytes")
        try:
            return msgspec.msgpack.decode(self._exactly(length, ends_at), type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Closed(f"the other end sent an invalid message: {error}") from None

    def is_idle(self) -> bool:
        """Whether the connection is open and nothing has arrived on it."""
        with self._lock:
            try:
                self._socket.recv(1)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return not self._read
            except (OSError, ValueError):
                pass
            return False

    def close(self) -> None:
        """Close it, and wake a thread that waits for it. May be called twice."""
        with suppress(OSError, ValueError):  # closed already
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # that of TLS would go on in plain text
        with self._lock:
            self._socket.close()

    def __del__(self) -> None:
        """Connections that a removed site kept end with it."""
        with suppress(AttributeError):
            self.close()

    def _exactly(self, count: int, ends_at: float) -> bytes:
        while len(self._read) < count:
            content = self._attempt(lambda: self._socket.recv(READ_BYTES), ends_at)
            if not content:
                raise Closed("the other end closed the connection")
            self._read += content
        found = bytes(self._read[:count])
        del self._read[:count]
        return found

    def _attempt(self, act: Callable[[], T], ends_at: float) -> T:
        """Do something with the socket as soon as it is possible, without holding the lock meanwhile."""
        while True:
            try:
                with self._lock:
                    return act()
            except ssl.SSLWantReadError:
                event = select.POLLIN
            except ssl.SSLWantWriteError:
                event = select.POLLOUT
            except ValueError as error:
                raise Closed(str(error)) from None
            if not _waited(self._socket, event, ends_at):
                raise TimeoutError("the other end does not answer")


def shake_hands(sock: ssl.SSLSocket, *, seconds_max: float) -> None:
    """Finish the handshake of a socket that does not block, within this time, however slowly bytes come."""
    ends_at = time.monotonic() + seconds_max
    while True:
        try:
            sock.do_handshake()
            return
        except ssl.SSLWantReadError:
            event = select.POLLIN
        except ssl.SSLWantWriteError:
            event = select.POLLOUT
        if not _waited(sock, event, ends_at):
            raise TimeoutError("the handshake does not end")


def _waited(sock: socket.socket, event: int, ends_at: float) -> bool:
    left = ends_at - time.monotonic()
    if left <= 0 or sock.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(sock, event)
    return bool(poll.poll(left * 1000))
