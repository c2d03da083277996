"""Measure the start time of the server, its memory when idle, and how many requests one core answers.

A real server runs in a separate process, with SQLite and the simulated engine. Clients run in another process on
loopback. Requests per second are shown twice: by wall time, and per second of processor time of the server, which is
what one core of an idle machine can answer. The baseline is an empty Litestar handler.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from bench.figures import Figure, Section, Unit
from bench.processes import Fault, environment, run_task
from teraflock.client import Client
from teraflock.wire.image import ImageRequest
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.shape import ShapeRequest

INSTANCES: Final = 20
STARTS: Final = 5
ROUNDS: Final = 7
FIRST_ANSWER_SECONDS_MAX: Final = 1.5
IDLE_MB_MAX: Final = 130
REQUESTS_PER_SECOND_MIN: Final = 2000
PER_SECOND: Final[Unit] = "requests/s"


def measure() -> Iterator[Section]:
    yield _starting()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with serving(home) as (process, server):
            key = (home / "cloud" / "operator.key").read_text().strip()
            _set_up(server, key)
            path = f"/v1/instances?limit={INSTANCES}"
            listing = [load(process.pid, server, path, key) for _ in range(ROUNDS)]
            health = [load(process.pid, server, "/v1/health", key) for _ in range(ROUNDS)]
        with bare() as (process, server):
            floor = [load(process.pid, server, "/", key) for _ in range(ROUNDS)]
    yield Section(
        title=f"GET /v1/instances, {INSTANCES} rows, key checked, SQLite, one process",
        figures=(
            *_both("listing", listing, REQUESTS_PER_SECOND_MIN),
            *_both("/v1/health, no key", health),
            *_both("baseline: an empty Litestar handler", floor),
        ),
        notes=(
            "The target is for one core. On a busy machine, use the figure per second of processor time.",
        ),
    )


def _both(what: str, rounds: list[tuple[float, float]], bar: float | None = None) -> tuple[Figure, Figure]:
    by_clock = tuple(each[0] for each in rounds)
    by_core = tuple(each[1] for each in rounds)
    return (
        Figure(what=f"{what}, wall time", unit=PER_SECOND, samples=by_clock, bar=bar, at_least=True),
        Figure(what=f"{what}, per core", unit=PER_SECOND, samples=by_core, bar=bar, at_least=True),
    )


def _starting() -> Section:
    seconds, used, resident = [], [], []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            with serving(Path(folder)) as (process, _):
                seconds.append(time.perf_counter() - began)
                used.append(cpu_seconds(process.pid))
                time.sleep(2.0)  # until its loops have run
                resident.append(_resident_mb(process.pid))
    return Section(
        title="A server with an empty home, simulated engine",
        figures=(
            Figure(
                what="from exec to the first response",
                unit="s",
                samples=tuple(seconds),
                bar=FIRST_ANSWER_SECONDS_MAX,
            ),
            Figure(what="processor time", unit="s", samples=tuple(used)),
            Figure(what="resident memory, idle", unit="MB", samples=tuple(resident), bar=IDLE_MB_MAX),
        ),
    )


@contextmanager
def serving(
    home: Path, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = _free_port()
    more = {
        "TERA_HOME": str(home),
        "TERA_ENGINE": "simulated",
        "TERA_LISTEN": f"127.0.0.1:{port}",
        "TERA_RATE_PER_SECOND": "1000000",  # checked for every request, but never reached
        "TERA_RATE_BURST": "1000000",
        **(settings or {}),
    }
    command = [sys.executable, "-c", "from teraflock.app.server import serve; serve()"]
    with _process(command, more, port) as process:
        yield process, f"http://127.0.0.1:{port}"


@contextmanager
def bare() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = _free_port()
    with _process([sys.executable, "-m", "bench.cloud_api_tasks", "bare", str(port)], {}, port) as process:
        yield process, f"http://127.0.0.1:{port}"


@contextmanager
def _process(command: list[str], more: dict[str, str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    with tempfile.TemporaryFile() as log:  # a pipe that nobody reads would stop a server that logs much
        process = subprocess.Popen(command, env=environment(more), stdout=subprocess.DEVNULL, stderr=log)
        try:
            _wait_for_answer(process, port, log)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)


def _wait_for_answer(process: subprocess.Popen[bytes], port: int, log: IO[bytes]) -> None:
    """Wait for the first byte of a response, polling as soon as the socket exists."""
    for _ in range(3000):
        if process.poll() is not None:
            log.seek(0)
            raise Fault(f"the server ended: {log.read()[-2000:].decode(errors='replace')}")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                if connection.recv(1):
                    return
        except ConnectionError:
            time.sleep(0.01)
    raise Fault("the server did not answer")


def _set_up(server: str, key: str) -> None:
    with Client(server, key) as client:
        client.images.create(ImageRequest(name="base", recipe="base"))
        while client.images.get("base").state != "ready":
            time.sleep(0.1)
        made = client.instances.launch(
            LaunchRequest(
                name="node", instances=INSTANCES, shape=ShapeRequest(gpu="V100"), labels={"team": "bench"}
            )
        )
        for instance in made.items:
            client.instances.wait_until(instance.id, "running")


def load(pid: int, server: str, path: str, key: str) -> tuple[float, float]:
    """Return requests per second of wall time, and per second of the server's processor time."""
    before = cpu_seconds(pid)
    result = run_task("bench.cloud_api_tasks", "load", server.rpartition(":")[2], path, key)
    used = cpu_seconds(pid) - before
    return result["requests"] / result["seconds"], result["sent"] / used


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
