"""Limits on the connections to the server, and which connection closes when a limit is reached.

Invariants:
- one source has at most `per_source` connections, and all sources together at most `most`, which leaves open files for
  the loops and the engine;
- at a limit, a new connection replaces the one that has waited longest without a request. So a client that sends its
  request at once is served, however many idle connections others hold;
- a connection whose request is in progress is never closed;
- a trusted proxy carries many clients, so only `most` limits it.
"""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from teraflock.api.addresses import Network, source_of

FILES_KEPT: Final = 128
"""Reserved for the database, logs, the engine and the loops."""
FILES_PER_EXEC: Final = 6
FILES_PER_THREAD: Final = 4


def connections_most(wanted: int, files: int, *, execs: int, threads: int) -> int:
    """The number of connections for a process that may open `files` files: at least a quarter of them."""
    kept = FILES_KEPT + FILES_PER_EXEC * execs + FILES_PER_THREAD * threads
    return min(wanted, max(files - kept, files // 4))


class OpenConnection:
    """One connection, from the moment it is accepted. `end` closes it at any time."""

    __slots__ = ("address", "end", "source")

    def __init__(self, address: str, source: str, end: Callable[[], object]) -> None:
        self.address = address
        self.source = source
        self.end = end


class Connections:
    def __init__(self, most: int, per_source: int, proxies: tuple[Network, ...] = ()) -> None:
        self.most = most
        self._per_source = per_source
        self._proxies = proxies
        self._open: dict[OpenConnection, None] = {}
        self._by_source: dict[str, int] = {}
        self._waiting: dict[OpenConnection, None] = {}
        """Connections without a request, the one that has waited longest first."""
        self._waiting_by_source: dict[str, dict[OpenConnection, None]] = {}

    def enter(
        self, address: str, end: Callable[[], object], on_closed: Callable[[OpenConnection], None]
    ) -> OpenConnection | None:
        """Add a connection. None: a limit is reached, and all connections in it have a request in progress."""
        source = source_of(address)
        if self._by_source.get(source, 0) >= self._per_source and not self._is_proxy(address):
            if not self._close_oldest(self._waiting_by_source.get(source, {}), on_closed):
                return None
        elif len(self._open) >= self.most and not self._close_oldest(self._waiting, on_closed):
            return None
        entered = OpenConnection(address, source, end)
        self._open[entered] = None
        self._by_source[source] = self._by_source.get(source, 0) + 1
        self.mark_idle(entered)
        return entered

    def leave(self, connection: OpenConnection) -> None:
        if connection not in self._open:
            return  # it was already closed to make room
        self.mark_busy(connection)
        del self._open[connection]
        self._by_source[connection.source] -= 1
        if not self._by_source[connection.source]:
            del self._by_source[connection.source]
            self._waiting_by_source.pop(connection.source, None)

    def mark_busy(self, connection: OpenConnection) -> None:
        """Mark the connection: a request is in progress."""
        if connection in self._waiting:
            del self._waiting[connection]
            del self._waiting_by_source[connection.source][connection]

    def mark_idle(self, connection: OpenConnection) -> None:
        if connection in self._open and connection not in self._waiting:
            self._waiting[connection] = None
            self._waiting_by_source.setdefault(connection.source, {})[connection] = None

    def _close_oldest(
        self, waiting: dict[OpenConnection, None], on_closed: Callable[[OpenConnection], None]
    ) -> bool:
        oldest = next(iter(waiting), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.end()
        on_closed(oldest)
        return True

    def _is_proxy(self, address: str) -> bool:
        if not self._proxies:
            return False
        ip = ip_address(address.partition("%")[0])
        return any(ip in network for network in self._proxies)

    def __len__(self) -> int:
        return len(self._open)
