"""The listening socket: accepts connections within the limits of `Connections`.

We accept them ourselves, because the address must be known before TLS begins: an unfinished handshake holds an open
file like any other connection. If no file is left, accepting pauses for a moment instead of failing in a busy loop.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from typing import Final

from teraflock.api.addresses import source_of
from teraflock.app.connections import OpenConnection
from teraflock.app.http_protocol import BoundedProtocol, SharedState

ACCEPTS_PER_TURN: Final = 64
"""Then other tasks of the event loop get their turn."""
PAUSE_SECONDS: Final = 0.5
_NO_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Listener:
    def __init__(
        self,
        sock: socket.socket,
        watch: SharedState,
        protocol: Callable[[OpenConnection], BoundedProtocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._sock = sock
        self._watch = watch
        self._protocol = protocol
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False
        sock.setblocking(False)
        self._resume()

    def close(self) -> None:
        self._closed = True
        self._loop.remove_reader(self._sock)
        for task in self._opening:
            task.cancel()

    async def wait_closed(self) -> None:
        """Required by uvicorn."""

    def _resume(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._pause(error)
                return
            self._take(sock, str(address[0]))

    def _pause(self, error: OSError) -> None:
        if error.errno not in _NO_FILES:
            raise error
        self._watch.refusals.note("accept", f"connections wait: {error.strerror}")
        self._loop.remove_reader(self._sock)
        self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _take(self, sock: socket.socket, address: str) -> None:
        entered = self._watch.connections.enter(address, sock.close, self._note_closed)
        if entered is None:
            sock.close()
            self._note(address, "refused")
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._open(sock, entered))
        entered.end = task.cancel
        self._opening.add(task)
        task.add_done_callback(lambda done: self._opened(done, sock, entered))

    def _note_closed(self, connection: OpenConnection) -> None:
        self._note(connection.address, "closed")

    def _note(self, address: str, what: str) -> None:
        self._watch.refusals.note(
            f"{what} {source_of(address)}", f"connection from {address} {what}: too many open connections"
        )

    def _opened(self, task: "asyncio.Task[None]", sock: socket.socket, entered: OpenConnection) -> None:
        self._opening.discard(task)
        if task.cancelled():  # possibly before it started
            self._drop(sock, entered)

    async def _open(self, sock: socket.socket, entered: OpenConnection) -> None:
        """Pass the connection to its protocol, which reports its end. TLS comes first, and may fail."""
        seconds = None if self._tls is None else self._watch.deadlines.head_seconds
        protocol = self._protocol(entered)
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol, sock, ssl=self._tls, ssl_handshake_timeout=seconds
            )
        except (OSError, TimeoutError):
            self._drop(sock, entered)
        except asyncio.CancelledError:
            protocol.forget()
            raise

    def _drop(self, sock: socket.socket, entered: OpenConnection) -> None:
        self._watch.connections.leave(entered)
        sock.close()
