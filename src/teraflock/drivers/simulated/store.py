"""A simulated world in a SQLite file. It survives `kill -9` of the processes that use it, and several may use
it.

It is separate from the server's database, like the state of a real engine. A power failure may lose it
(`synchronous` is off), which makes it fast.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar, cast, get_args

import msgspec

from teraflock.base.errors import StorageFailed
from teraflock.drivers.simulated.model import Thing
from teraflock.drivers.simulated.world import Turn

T = TypeVar("T", bound=Thing)

WAIT_SECONDS_MAX: Final = 60.0
STATEMENTS_CACHED: Final = 64


Decoded = dict[type, tuple[tuple[int, int], dict[bytes, Thing]]]
"""The last listing of each kind by the bodies of its things, and which state of the file it is of."""
_ENCODER: Final = msgspec.msgpack.Encoder()


class FileWorld:
    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._decoded: Decoded = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path,
                timeout=WAIT_SECONDS_MAX,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=STATEMENTS_CACHED,
            )
            self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
            self._connection.execute("PRAGMA synchronous = OFF")
            with self.write():
                self._connection.execute(
                    "CREATE TABLE IF NOT EXISTS thing (kind TEXT NOT NULL, key TEXT NOT NULL,"
                    " host TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, key))"
                )
                self._connection.execute(
                    "CREATE INDEX IF NOT EXISTS thing_by_host ON thing (host, kind, key)"
                )
        except (sqlite3.Error, OSError) as error:
            raise StorageFailed(f"Cannot store the simulated world in `{path}`: {error}") from error

    @contextmanager
    def read(self) -> Iterator[Turn]:
        with self._lock:
            self._connection.execute("BEGIN")  # one consistent state for all reads
            try:
                yield _FileTurn(self._connection, self._decoded)
            finally:
                self._connection.execute("COMMIT")

    @contextmanager
    def write(self) -> Iterator[Turn]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield _FileTurn(self._connection, self._decoded)
            except BaseException:
                self._connection.execute("ROLLBACK")
                self._decoded.clear()  # a listing may have things that were never committed
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class _FileTurn:
    def __init__(self, connection: sqlite3.Connection, decoded: Decoded) -> None:
        """`decoded`: few things change until the next listing, and often none."""
        self._connection = connection
        self._decoded = decoded

    def get(self, kind: type[T], key: str) -> T | None:
        sql = "SELECT body FROM thing WHERE kind = ? AND key = ?"
        row = self._connection.execute(sql, (kind.__name__, key)).fetchone()
        return None if row is None else _decode(kind, row[0])

    def put(self, thing: Thing) -> None:
        self._connection.execute(
            "INSERT INTO thing (kind, key, host, body) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (kind, key) DO UPDATE SET host = excluded.host, body = excluded.body",
            (type(thing).__name__, thing.key, thing.host, _ENCODER.encode(thing)),
        )

    def remove(self, kind: type[Thing], key: str) -> None:
        self._connection.execute("DELETE FROM thing WHERE kind = ? AND key = ?", (kind.__name__, key))

    def every(self, kind: type[T]) -> list[T]:
        sql = "SELECT body FROM thing WHERE kind = ? ORDER BY key"
        others = self._connection.execute("PRAGMA data_version").fetchone()[0]  # counts their changes
        state = self._connection.total_changes, others
        last, found = self._decoded.get(kind, (None, {}))
        known = cast("dict[bytes, T]", found)
        if last == state:
            return list(known.values())
        things = {
            body: known.get(body) or _decode(kind, body)
            for (body,) in self._connection.execute(sql, (kind.__name__,))
        }
        self._decoded[kind] = state, cast("dict[bytes, Thing]", things)
        return list(things.values())

    def on_host(self, kind: type[T], host: str) -> list[T]:
        sql = "SELECT body FROM thing WHERE host = ? AND kind = ? ORDER BY key"
        return [_decode(kind, body) for (body,) in self._connection.execute(sql, (host, kind.__name__))]


_DECODERS: Final = {kind.__name__: msgspec.msgpack.Decoder(kind) for kind in get_args(Thing)}


def _decode(kind: type[T], body: bytes) -> T:
    thing = _DECODERS[kind.__name__].decode(body)
    assert isinstance(thing, kind)
    return thing
