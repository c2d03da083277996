"""Runs `tera` in a fork of a process that has already imported its modules: 20 ms instead of 200. Servers, too: 0.4 s
instead of 1.2.

Each command is still a process of its own, with its own environment, files and exit code, and ends like any Python
process. Only the imports are shared. tests/tidy/test_cold_start.py and tests/documents start `tera` anew, and `tera up`
starts its server anew.

    a test          sends words, environment and three files over a new connection
    `_serve`        forks for each connection; the fork waits for the command and sends its process id and exit code
    `_command`      the command itself
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("cli", "client", "wire", "words", "catalog", "offer", "estimate", "plan")
MODULES: Final = ("app.local", "app.home", "app.connections", "storage.sqlite", "storage.group_commit")
SET_BEFORE_IMPORTS: Final = ("PYTHON", "LANG", "LC_")
KILLED_SECONDS_MAX: Final = 30
REQUEST_BYTES_MAX: Final = 1 << 20
COMMAND: Final = "command"
SERVER: Final = "server"


def suits(environment: Mapping[str, str]) -> bool:
    """Whether Python itself would run in the same way. What it reads as it starts is fixed in the warm process."""
    return _fixed(environment) == {**_fixed(os.environ), "PYTHONWARNINGS": "error"}


def run(
    words: Sequence[str], environment: Mapping[str, str], *, seconds_max: float
) -> "subprocess.CompletedProcess[bytes]":
    out, err = os.memfd_create("stdout"), os.memfd_create("stderr")
    try:
        process = _WarmProcess(COMMAND, words, environment, out, err)
        try:
            code = process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(KILLED_SECONDS_MAX)
            raise
        return subprocess.CompletedProcess(list(words), code, _content(out), _content(err))
    finally:
        os.close(out)
        os.close(err)


class _WarmProcess:
    """What tests use of `subprocess.Popen`."""

    def __init__(
        self, kind: str, words: Sequence[str], environment: Mapping[str, str], out: int, err: int
    ) -> None:
        self._words = list(words)
        self._code: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(_warm_process(kind, os.getpid()))
        request = json.dumps([self._words, dict(environment), str(Path.cwd())]).encode()
        nothing = os.open(os.devnull, os.O_RDONLY)
        socket.send_fds(self._connection, [len(request).to_bytes(4)], [nothing, out, err])
        os.close(nothing)
        self._connection.sendall(request)
        self.pid = int.from_bytes(_received(self._connection))

    def wait(self, timeout: float) -> int:
        if self._code is None:
            self._connection.settimeout(timeout)
            try:
                self._code = int.from_bytes(_received(self._connection), signed=True)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self._words, timeout) from None
            self._connection.close()
        return self._code

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class WarmServer(_WarmProcess):
    """A process that runs code with the modules of a server."""

    def __init__(self, code: str, environment: Mapping[str, str]) -> None:
        read, write = os.pipe()
        nothing = os.open(os.devnull, os.O_WRONLY)
        self.stderr = os.fdopen(read, "rb")
        try:
            super().__init__(SERVER, [code], environment, nothing, write)
        finally:
            os.close(write)
            os.close(nothing)


def _received(connection: socket.socket) -> bytes:
    content = connection.recv(4)
    assert len(content) == 4, "the warm process ended"
    return content


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)


def _fixed(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(SET_BEFORE_IMPORTS)}


@cache
def _warm_process(kind: str, of_process: int) -> str:
    """Start the warm process, and return the path of its socket. It ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="tera-warm-")
    path = f"{folder.name}/socket"
    more = {"PYTHONWARNINGS": "error", "OPENBLAS_NUM_THREADS": "1"} if kind == COMMAND else {}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.story.warm", kind, path],
        cwd=ROOT,
        env={**os.environ, **more},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )

    def end() -> None:
        assert process.stdin
        process.stdin.close()
        process.wait()
        folder.cleanup()

    atexit.register(end)
    while not Path(path).exists():
        assert process.poll() is None, "the warm process ended"
        time.sleep(0.01)
    return path


def _import_commands() -> None:
    for name in (*MODULES, *PACKAGES):
        importlib.import_module(f"teraflock.{name}")
    for package in PACKAGES:
        folder = importlib.import_module(f"teraflock.{package}").__path__
        for module in pkgutil.walk_packages(folder, f"teraflock.{package}."):
            importlib.import_module(module.name)


def _import_server() -> None:
    """Build a server and close it: much is imported when it is first used."""
    from teraflock.app.console import application_with_console
    from teraflock.app.http_server import HttpServer
    from teraflock.app.settings import Place, Settings
    from teraflock.app.wiring import Cloud

    with tempfile.TemporaryDirectory() as home:
        place, settings = Place(Path(home)), Settings(engine="simulated", simulated_hosts="1x1xV100")
        place.folder.mkdir(parents=True)
        cloud = Cloud(place, settings)
        HttpServer(application_with_console(cloud), settings, files=10_000)
        cloud.stop()


def _serve(path: str) -> socket.socket:
    """Fork for each connection. Returns only in a fork, with its connection."""
    import select

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.new")
        listener.listen(64)
        Path(f"{path}.new").rename(path)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes forks that ended
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if listener not in ready:
                os._exit(0)  # the tests ended
            connection, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return connection
            connection.close()


def _command(connection: socket.socket) -> None:
    """Become the command, in another fork, and report its end in this one."""
    size, files, _, _ = socket.recv_fds(connection, 4, 3)
    content = bytearray()
    while len(content) < int.from_bytes(size):
        content += connection.recv(REQUEST_BYTES_MAX)
    process = os.fork()
    if process:
        with contextlib.suppress(BrokenPipeError):  # the test waited long enough
            connection.sendall(process.to_bytes(4))
            _, status = os.waitpid(process, 0)
            connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
        os._exit(0)
    connection.close()
    words, environment, folder = json.loads(content)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv = ["tera", *words]


def main() -> None:
    kind, path = sys.argv[1:]
    _import_server() if kind == SERVER else _import_commands()
    assert threading.active_count() == 1, "a fork has no other threads"
    gc.collect()
    gc.freeze()  # so that forks share the memory of the modules
    _command(_serve(path))
    if kind == SERVER:
        code = sys.argv[1]
        sys.argv = ["tera"]
        exec(code, {"__name__": "__main__"})
        return
    from teraflock.cli.main import run as run_tera

    run_tera()


if __name__ == "__main__":
    main()
