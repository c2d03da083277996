"""Measure launches per second over the API, with 1, 4 and 16 concurrent clients, on SQLite and PostgreSQL.

Real servers with their loops run in separate processes, with the simulated engine and 500 hosts of 8 cards each.
Clients run in another process, each in its own organisation. A launch requests one card and has an `Idempotency-Key`. A
launch that fails for any reason counts as refused. PostgreSQL is the local installation, started for this benchmark.

On a busy machine, wall time is not reliable. So launches are also shown per second of processor time of the servers and
PostgreSQL. An idle machine with two cores can reach at most twice that.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from tests.postgres_server import NoServer, PostgresServer

from bench.cloud_api import serving
from bench.figures import Figure, Section
from bench.processes import run_task
from teraflock.client import Client
from teraflock.drivers.simulated.site import WORLD_NAME
from teraflock.wire.image import ImageRequest
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.organisation import OrganisationRequest
from teraflock.wire.shape import ShapeRequest

CLIENTS: Final = (1, 4, 16)
SECONDS: Final = 8.0
WARM_SECONDS: Final = (
    4.0  # warm-up: opens connections, prepares statements and creates the networks of the projects
)
HOSTS: Final = "500x8xV100"
LAUNCHES_PER_SECOND_MIN: Final = 100
SETTINGS: Final = {
    "TERA_SIMULATED_HOSTS": HOSTS,
    "TERA_DEFAULT_ORGANISATION_QUOTA": "projects=20 instances=100000 gpus=100000",
    "TERA_DEFAULT_PROJECT_QUOTA": "instances=100000 gpus=100000",
    "TERA_RATE_PER_ORGANISATION": "1000000",
    "TERA_FAILED_KEYS_PER_MINUTE": "1000000",
}


def measure() -> Iterator[Section]:
    yield Section(title="Launches/s, SQLite, one server", figures=_figures(None, 1))
    try:
        postgres = PostgresServer()
    except NoServer as reason:
        yield Section(title="Launches/s, PostgreSQL", notes=(str(reason),))
        return
    try:
        yield Section(title="Launches/s, PostgreSQL, one server", figures=_figures(postgres, 1))
        yield Section(title="Launches/s, PostgreSQL, two servers", figures=_figures(postgres, 2))
    finally:
        postgres.stop()


def _figures(postgres: PostgresServer | None, servers: int) -> tuple[Figure, ...]:
    figures: list[Figure] = []
    for clients in CLIENTS:
        result = _measured(postgres, servers, clients)
        bar = LAUNCHES_PER_SECOND_MIN if postgres and clients == max(CLIENTS) else None
        rate = result["launched"] / result["seconds"]
        what = f"{clients} client{'s' if clients > 1 else ''}"
        figures += (
            Figure(what=f"{what}, wall time", unit="launches/s", samples=(rate,), bar=bar, at_least=True),
            Figure(what=f"{what}, per second of processor time", unit="launches/s",
                   samples=(result["with_warm_up"] / result["used"],)),
            Figure(what=f"{what}, refused", unit="launches", samples=(result["refused"],), bar=0),
        )  # fmt: skip
    return tuple(figures)


def _measured(postgres: PostgresServer | None, servers: int, clients: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, _database(postgres) as address, ExitStack() as running:
        home = Path(folder)
        more = {**SETTINGS, **({"TERA_DATABASE": address} if address else {})}
        started = [running.enter_context(_sharing(home, n, more)) for n in range(servers)]
        urls = [url for _, url in started]
        operator = (home / "0" / "cloud" / "operator.key").read_text().strip()
        keys = _set_up(urls[0], operator, clients)
        pids = [process.pid for process, _ in started]
        before = _cpu_seconds(pids, postgres)
        result: dict[str, float] = run_task("bench.launches", ",".join(urls), ",".join(keys), str(SECONDS))
        return {**result, "used": _cpu_seconds(pids, postgres) - before}


def _sharing(
    home: Path, number: int, settings: Mapping[str, str]
) -> AbstractContextManager[tuple[subprocess.Popen[bytes], str]]:
    """All servers have the engine of the first: with engines of their own, each would repair what others launched."""
    if number:
        folder = home / str(number) / "cloud"
        folder.mkdir(parents=True)
        (folder / WORLD_NAME).symlink_to(home / "0" / "cloud" / WORLD_NAME)
    return serving(home / str(number), settings)


@contextmanager
def _database(postgres: PostgresServer | None) -> Iterator[str]:
    if postgres is None:
        yield ""
    else:
        with postgres.fresh() as address:
            yield address


def _set_up(server: str, operator: str, clients: int) -> list[str]:
    """Create a public image, and an organisation with a key for each client."""
    with Client(server, operator) as client:
        client.images.create(ImageRequest(name="base", recipe="base"))
        while client.images.get("base").state != "ready":
            time.sleep(0.1)
        requests = [OrganisationRequest(name=f"org-{number}", owner="owner") for number in range(clients)]
        return [client.organisations.create(request).key for request in requests]


def _cpu_seconds(pids: Sequence[int], postgres: PostgresServer | None) -> float:
    """Return the processor time of the servers and PostgreSQL, including processes that ended."""
    roots = [*pids, *([postgres.pid] if postgres else [])]
    return sum(_cpu_seconds_of(pid) for root in roots for pid in (root, *_children(root)))


def _cpu_seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# The clients


def launch(servers: Sequence[str], keys: Sequence[str], seconds: float) -> dict[str, float]:
    """Launch with all keys concurrently, one instance at a time per key, and count the launches."""
    counts = [(0, 0, 0)] * len(keys)
    errors: set[str] = set()

    def work(number: int) -> None:
        launched = refused = warm = 0
        with Client(servers[number % len(servers)], keys[number]) as client:
            for attempt in count():
                asked_at = time.perf_counter()
                if asked_at >= until:
                    break
                try:
                    client.instances.launch(
                        LaunchRequest(shape=ShapeRequest(gpu="V100")), idempotency_key=f"{number}-{attempt}"
                    )
                    launched += asked_at >= began
                    warm += asked_at < began
                except Exception as error:
                    refused += 1
                    errors.add(str(error))
        counts[number] = (launched, refused, warm)

    began = time.perf_counter() + WARM_SECONDS
    until = began + seconds
    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(keys))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in sorted(errors):
        print(error, file=sys.stderr)
    launched, refused, warm = (sum(each[index] for each in counts) for index in range(3))
    seconds_used = time.perf_counter() - began
    return {
        "launched": launched,
        "with_warm_up": launched + warm,
        "refused": refused,
        "seconds": seconds_used,
    }


if __name__ == "__main__":
    print(json.dumps(launch(sys.argv[1].split(","), sys.argv[2].split(","), float(sys.argv[3]))))
