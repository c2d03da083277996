"""Runs `tera` in a fork of a process that has already imported its modules: 20 ms instead of 200.

Each command is still a process of its own, with its own environment, files and exit code, and ends like any Python
process. Only the imports are shared. tests/tidy/test_cold_start.py and tests/documents start `tera` anew.

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
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("cli", "client", "wire", "words", "catalog", "offer", "estimate", "plan")
MODULES: Final = ("app.local", "app.home", "app.connections", "storage.sqlite", "storage.group_commit")
SET_BEFORE_IMPORTS: Final = ("PYTHON", "LANG", "LC_")
REQUEST_BYTES_MAX: Final = 1 << 20


def suits(environment: Mapping[str, str]) -> bool:
    """Whether Python itself would run in the same way. What it reads as it starts is fixed in the warm process."""
    return _fixed(environment) == {**_fixed(os.environ), "PYTHONWARNINGS": "error"}


def run(
    words: Sequence[str], environment: Mapping[str, str], *, seconds_max: float
) -> "subprocess.CompletedProcess[bytes]":
    out, err = os.memfd_create("stdout"), os.memfd_create("stderr")
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(_warm_process(os.getpid()))
            request = json.dumps([list(words), dict(environment), str(Path.cwd())]).encode()
            socket.send_fds(connection, [len(request).to_bytes(4)], [nothing, out, err])
            connection.sendall(request)
            code = _awaited(connection, words, seconds_max)
        return subprocess.CompletedProcess(list(words), code, _content(out), _content(err))
    finally:
        for each in (out, err, nothing):
            os.close(each)


def _awaited(connection: socket.socket, words: Sequence[str], seconds_max: float) -> int:
    process = int.from_bytes(_received(connection))
    connection.settimeout(seconds_max)
    try:
        return int.from_bytes(_received(connection), signed=True)
    except TimeoutError:
        os.kill(process, signal.SIGKILL)
        raise subprocess.TimeoutExpired(list(words), seconds_max) from None


def _received(connection: socket.socket) -> bytes:
    content = connection.recv(4)
    assert len(content) == 4, "the warm process ended"
    return content


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)


def _fixed(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(SET_BEFORE_IMPORTS)}


@cache
def _warm_process(of_process: int) -> str:
    """Start the warm process, and return the path of its socket. It ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="tera-warm-")
    path = f"{folder.name}/socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.story.warm", path],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "error", "OPENBLAS_NUM_THREADS": "1"},
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


def _import_all() -> None:
    for name in (*MODULES, *PACKAGES):
        importlib.import_module(f"teraflock.{name}")
    for package in PACKAGES:
        folder = importlib.import_module(f"teraflock.{package}").__path__
        for module in pkgutil.walk_packages(folder, f"teraflock.{package}."):
            importlib.import_module(module.name)


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
    _import_all()
    gc.collect()
    gc.freeze()  # so that forks share the memory of the modules
    _command(_serve(sys.argv[1]))
    from teraflock.cli.main import run as run_tera

    run_tera()


if __name__ == "__main__":
    main()
