"""Connections whose other end has not proved yet who it is. Anybody on the network can open them.

They are few, and a new one is always accepted: if there are too many, the oldest one of the address that has the most
is closed. A stranger who opens many connections, and finishes none, therefore closes only its own.
"""

import socket
import ssl
import threading
from collections import Counter
from contextlib import suppress

from teraflock.drivers.joined.channel import shake_hands


class Strangers:
    def __init__(self, count_max: int, *, seconds_max: float) -> None:
        """`seconds_max` is for a whole handshake, however slowly it proceeds."""
        self._count_max = count_max
        self._seconds_max = seconds_max
        self._lock = threading.Lock()
        self._open: dict[socket.socket, tuple[str, socket.socket]] = {}
        """Oldest first: each accepted socket with its address, and the one that took its place for the handshake."""

    def add(self, raw: socket.socket, source: str) -> None:
        with self._lock:
            self._open[raw] = (source, raw)
            if len(self._open) <= self._count_max:
                return
            ((most, _),) = Counter(address for address, _ in self._open.values()).most_common(1)
            oldest = next(each for each, (address, _) in self._open.items() if address == most)
            _, current = self._open.pop(oldest)
            with suppress(OSError):
                socket.socket.shutdown(current, socket.SHUT_RDWR)  # its own thread closes it

    def remove(self, raw: socket.socket) -> None:
        """It is over, or no longer a stranger."""
        with self._lock:
            self._open.pop(raw, None)

    def secured(self, raw: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
        """The connection after its handshake."""
        with self._lock:
            if raw not in self._open:
                raise ConnectionError("closed for the sake of others")
            raw.setblocking(False)
            sock = context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
            self._open[raw] = (self._open[raw][0], sock)
        try:
            shake_hands(sock, seconds_max=self._seconds_max)
        except BaseException:
            sock.close()
            raise
        return sock
