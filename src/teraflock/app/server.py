"""`tera serve`: one process that answers requests and runs the loops.

Invariants: the socket is opened first, so a port in use fails at once. There is one server per home. After a signal,
the server accepts no new requests, finishes those in progress, ends streams and loops, and closes the database.
"""

import fcntl
import logging
import os
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from teraflock.app.files import put
from teraflock.app.installation.backup.unfinished import finish_interrupted
from teraflock.app.installation.places import Places
from teraflock.app.server_log import ServerLog
from teraflock.app.settings import LOG_FILE, Place, Settings, address_of, load_settings, place
from teraflock.base.errors import Conflict, Refused, StorageFailed, Unavailable
from teraflock.base.garbage import settle

BACKLOG: Final = 2048
SWITCH_SECONDS: Final = 0.0005
"""How long a thread that computes lets others wait for the interpreter. A page changes threads some twenty times, and
with Python's 5 ms each change waits for a loop that is computing. On a busy machine with 10,000 instances, p99 of eight
pages was 133 ms with it and 200 ms without; on an idle one there was no difference."""
LOCK_FILE: Final = "server.lock"
LOG: Final = logging.getLogger("teraflock.server")


def serve(at: Place | None = None, settings: Settings | None = None) -> None:
    """Answer requests until a signal arrives."""
    at = at or place()
    finish_interrupted(Places(at.home))  # an interrupted restore
    settings = settings or load_settings(at)
    try:
        at.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StorageFailed(
            f"Could not create `{at.folder}`: {error.strerror}",
            hint="Set `TERA_HOME` to a writable folder",
        ) from None
    with _alone(at), listening(settings) as sock:
        _log_to_stderr(at, settings)
        _raise_open_files()
        keep_memory_out_of_core_dumps()
        _run(at, settings, sock)


def _run(at: Place, settings: Settings, sock: socket.socket) -> None:
    try:
        # These imports take half a second, so they come after the socket.
        from teraflock.app.console import application_with_console
        from teraflock.app.http_server import HttpServer
        from teraflock.app.wiring import Cloud
    except ModuleNotFoundError as missing:
        raise Refused(
            f"Could not start the server: `{missing.name}` is not installed",
            hint="Install it with `pip install 'teraflock[server]'`",
        ) from missing

    cloud = Cloud(at, settings)
    try:
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        server = HttpServer(application_with_console(cloud), settings, files=files)
        sys.setswitchinterval(SWITCH_SECONDS)
        cloud.start()
        settle()
        put(at.pid, f"{os.getpid()}\n{settings.listen}\n".encode())
        LOG.info("listening on %s", url_of(settings, sock))
        server.run(sockets=[sock])
    finally:
        cloud.stop()
        at.pid.unlink(missing_ok=True)
        LOG.info("ended")


def keep_memory_out_of_core_dumps() -> None:
    """The memory has credentials of cloud accounts. A limit of 0 alone does not hold where a program gets the dump."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with suppress(OSError):  # not on every system
        Path("/proc/self/coredump_filter").write_text("0", "ascii")


def url_of(settings: Settings, sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"{'https' if settings.tls_cert else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


@contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """The listening socket, which already accepts connections: early clients wait a moment."""
    host, port = address_of(settings.listen)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise Unavailable(
            f"`{settings.listen}` is not an address of this machine: {error.strerror}",
            hint="Set `listen` or `TERA_LISTEN` to one of its addresses, such as `127.0.0.1:8372`",
        ) from None
    with socket.socket(family, kind, protocol) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
            sock.listen(BACKLOG)
        except OSError as error:
            raise Unavailable(
                f"The server cannot listen on `{settings.listen}`: {error.strerror}",
                hint="Another program uses it. Stop that program, or choose another address with `TERA_LISTEN`",
            ) from None
        yield sock


@contextmanager
def _alone(at: Place) -> Iterator[None]:
    """One server per home. The lock ends with the process, even after a crash."""
    with (at.folder / LOCK_FILE).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Conflict(
                f"A server with the home `{at.home}` is already running",
                hint="Stop it with `make down`, or set `TERA_HOME` to another folder",
            ) from None
        yield


def _raise_open_files() -> None:
    """Each connection is an open file, and a shell allows only 1,024 by default."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _log_to_stderr(at: Place, settings: Settings) -> None:
    root = logging.getLogger()
    root.handlers = [ServerLog(at.folder / LOG_FILE)]
    root.setLevel(settings.log_level.upper())
    # Its warnings about invalid requests would fill the log.
    logging.getLogger("uvicorn.error").setLevel("ERROR")
    logging.getLogger("fontTools").setLevel("WARNING")  # it writes many lines about each PDF
