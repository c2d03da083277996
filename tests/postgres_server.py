"""A private PostgreSQL for one run of the tests, from whatever is installed on this machine.

It listens on a socket in a folder of its own, so it meets no other server. It ends with the test run, even
one that is killed: on Linux the kernel passes the death of the parent on to it.
"""

import atexit
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from teraflock.base.clock import SystemClock
from teraflock.storage.open import open_database

FOLDER_PREFIX = "teraflock-postgres-"
PARENTS = (Path("/dev/shm"), Path("/tmp"))
MEMORY_BYTES_MIN = 2 << 30
START_SECONDS_MAX = 60.0
SETTINGS = {
    "fsync": "off",  # the tests kill clients, never the machine
    "full_page_writes": "off",
    "synchronous_commit": "off",  # which the server must overrule for its own transactions
    "listen_addresses": "",  # the socket only
    "max_connections": "200",
}


class NoServer(Exception):
    """No PostgreSQL can be had here; the text says why."""


class PostgresServer:
    def __init__(self) -> None:
        self._programs = _find_programs()
        self._as_user = _unprivileged_user()
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0
        self._has_template = False
        _remove_leftovers()
        self._folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=_parent()))
        self._owner = (self._folder / "owner.new").open("w")
        fcntl.flock(self._owner, fcntl.LOCK_EX)  # the kernel lets go of it when this process ends
        (self._folder / "owner.new").rename(self._folder / "owner")  # locked before another run can see it
        atexit.register(self.stop)
        if self._as_user:
            os.chown(self._folder, self._as_user.pw_uid, self._as_user.pw_gid)
        self._make_cluster()
        self._start()

    @property
    def pid(self) -> int:
        assert self._process is not None, "started"
        return self._process.pid

    def stop(self) -> None:
        atexit.unregister(self.stop)
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)  # at once: nothing in it is worth a checkpoint
            self._process.wait()
        self._owner.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def address(self, database: str = "postgres", schema: str = "public") -> str:
        user = self._as_user.pw_name if self._as_user else pwd.getpwuid(os.getuid()).pw_name
        return (
            f"postgresql://{user}@/{database}?host={self._folder}&options=-csearch_path%3D{schema}"
            f"&application_name={database}-{schema}"
        )

    @contextmanager
    def fresh(self, *, migrated: bool = False) -> Iterator[str]:
        """The address of a schema with nothing in it, or of a database that has all its tables."""
        import psycopg

        self._made += 1
        name = f"test_{self._made}"
        template = self._with_tables() if migrated else ""
        with psycopg.connect(self.address(), autocommit=True) as connection:
            if migrated:
                connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY".encode())
                yield self.address(name)
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
            else:
                connection.execute(f"CREATE SCHEMA {name}".encode())
                yield self.address(schema=name)
                connection.execute(f"DROP SCHEMA {name} CASCADE".encode())

    def _with_tables(self) -> str:
        """A database to copy: that takes a third of the time that making its tables does."""
        import psycopg

        if not self._has_template:
            with psycopg.connect(self.address(), autocommit=True) as connection:
                connection.execute(b"CREATE DATABASE with_tables")
            open_database(self.address("with_tables"), SystemClock()).close()
            self._has_template = True
        return "with_tables"

    def _make_cluster(self) -> None:
        user = ["--username", self._as_user.pw_name] if self._as_user else []
        made = subprocess.run(
            [
                str(self._programs / "initdb"),
                *("--pgdata", str(self._folder / "data"), "--auth", "trust", *user),
                *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
            ],
            capture_output=True,
            cwd=self._folder,
            check=False,
            **self._identity(),
        )
        if made.returncode:
            self._give_up(f"initdb failed: {made.stderr.decode(errors='replace').strip()[-500:]}")

    def _start(self) -> None:
        settings = [word for key, value in SETTINGS.items() for word in ("-c", f"{key}={value}")]
        log = self._folder / "log"
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [
                    *_dies_with_parent(),
                    str(self._programs / "postgres"),
                    *("-D", str(self._folder / "data"), "-k", str(self._folder), *settings),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C in the terminal is for the tests; they stop the server
                **self._identity(),
            )
        give_up_at = time.monotonic() + START_SECONDS_MAX
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                self._give_up(f"postgres did not start: {log.read_text(errors='replace').strip()[-500:]}")
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        asked = subprocess.run(
            [str(self._programs / "pg_isready"), "--quiet", "--host", str(self._folder)], check=False
        )
        return asked.returncode == 0

    def _identity(self) -> dict[str, Any]:
        if self._as_user is None:
            return {}
        return {"user": self._as_user.pw_uid, "group": self._as_user.pw_gid, "extra_groups": []}

    def _give_up(self, reason: str) -> None:
        self.stop()
        raise NoServer(reason)


def _parent() -> Path:
    """In memory where there is room for it: nothing of it must survive, and each test copies a database."""
    memory, disk = PARENTS
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MEMORY_BYTES_MIN
    return memory if has_room else disk


def _find_programs() -> Path:
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True
    )
    if on_path := shutil.which("initdb"):
        folders.append(Path(on_path).resolve().parent)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoServer("PostgreSQL is not installed: no `initdb` in /usr/lib/postgresql/*/bin or on the PATH")


def _unprivileged_user() -> pwd.struct_passwd | None:
    """Who runs the server when the tests are run by root, whom PostgreSQL refuses."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise NoServer("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`")


def _dies_with_parent() -> Sequence[str]:
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "QUIT"] if setpriv else []


def _remove_leftovers() -> None:
    """Folders of test runs that were killed. Their servers are dead, or about to die."""
    for folder in [found for parent in PARENTS for found in parent.glob(f"{FOLDER_PREFIX}*")]:
        try:
            with (folder / "owner").open() as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # of a run that goes on, of another user, or just being made
