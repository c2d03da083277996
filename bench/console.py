"""Measure the console with 10,000 instances and 100,000 offers: pages, filters, first paint, live updates, memory.

A real server runs in a separate process. Pages are requested over one connection on loopback, and counted with the
whole response. The server's processor time does not depend on how busy the machine is. `bench/console_browser.py` has
what a browser measures. `TERA_CONSOLE_INSTANCES` sets another number of instances.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.console.browser import ADDRESSES, LEADING_ELSEWHERE

from bench.cloud_api import cpu_seconds, serving
from bench.console_browser import browsed
from bench.console_crowd import furnish_one_of_each, multiply_rows, queue_launch
from bench.figures import Figure, Section
from bench.processes import Fault, at_home, run_task
from teraflock.base.quantities import MIB
from teraflock.client import Client
from teraflock.console.page import PREFIX
from teraflock.console.pages.all import PAGES
from teraflock.wire.console import ConsoleLinkRequest
from teraflock.wire.image import ImageRequest
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.project import ProjectRequest
from teraflock.wire.shape import ShapeRequest

INSTANCES: Final = int(os.environ.get("TERA_CONSOLE_INSTANCES", "10000"))
PER_ORDER: Final = 100
PROJECTS: Final = ("default", "second", "third")  # the network of a project has about 4,000 addresses
OFFERS: Final = 100_000
WARM_UP: Final = 3
REPEATS: Final = 40
SETTLE_SECONDS: Final = 20.0
"""How long after the start pages are measured: in their first turns, the loops read everything."""
PAGE_MS_MAX: Final = 50
FILTER_MS_MAX: Final = 100
IDLE_MB_MAX: Final = 100
FULL_MB_MAX: Final = 500
SECONDS_MAX: Final = 1800.0
LIST: Final = "/console/projects/default/instances"
QUERIES: Final = {
    "show_quote": "?shape=custom&gpu=V100&vcpus=4",
    "quote_resize": "?vcpus=3",
    "quote_volume": "?size_gb=100",
    "check_reach": "?source=internet&target=web&port=443",
    "calculate_offers": "?gpu=A100&count=8&hours=100",
    "show_price_history": "?gpu=A100",
    "compare_buying": "?gpu=V100&count=2&purchase=16000&years=3&watts=900&power=0.15",
}
ELSEWHERE: Final = frozenset({*LEADING_ELSEWHERE, "list_orphans", "show_invoice", "show_certificate"})
"""Pages that lead to others, or that need what this installation lacks: a cloud, an invoice, four passed lessons."""
FILTERS: Final = {
    "filter: instances by name": f"{LIST}-rows?name=a",
    "filter: instances by state": f"{LIST}-rows?state=stopped",
    "filter: a card": "/console/offers/rows?gpu=A100",
    "filter: card, count, region, mode": "/console/offers/rows?gpu=A100&count=4%2B&region=us-&mode=on-demand",
    "filter: order by TFLOPS": "/console/offers/rows?sort=price-per-tflops",
    "filter: highest price": "/console/offers/rows?price_max=2",
}
BOOK: Final = (
    "- {from: 2026-01-01, currency: USD, gpu: {V100: 2.48/hour}, vcpu: 0.012/hour, disk: 0.1/month}\n"
)


def measure() -> Iterator[Section]:
    with (
        tempfile.TemporaryDirectory(prefix="tera-console-") as empty,
        serving(Path(empty)) as (process, server),
    ):
        with Client(server, _key(Path(empty))) as client:
            client.instances.list()
        time.sleep(2)
        idle = _memory(process, "server with the shipped catalog, idle", IDLE_MB_MAX)
    with tempfile.TemporaryDirectory(prefix="tera-console-") as folder:
        home = Path(folder)
        hosts = -(-INSTANCES // 8) + 4
        settings = {
            "TERA_SIMULATED_HOSTS": f"{hosts}x8xV100",
            "TERA_SIMULATED_BOOT_SECONDS": "0.01",
            "TERA_DEFAULT_ORGANISATION_QUOTA": "projects=20",
            "TERA_DEFAULT_PROJECT_QUOTA": "ports=100000",
            "TERA_ADDRESS_POOL": "203.0.113.0/28",
            "TERA_SIGN_UP": "true",
        }
        with serving(home, settings) as (process, server):
            furnish(server, home)
            Visitor(server, _key(home), process)  # a session to multiply
        multiply_rows(home)
        run_task("bench.offer_tasks", "fill", str(OFFERS), env=at_home(home))
        with serving(home, settings) as (process, server):
            visitor = Visitor(server, _key(home), process)
            visitor.settle()
            yield _pages(visitor)
            full = _memory(process, f"server with {INSTANCES:,} instances and {OFFERS:,} offers", FULL_MB_MAX)
        with serving(home, {**settings, "TERA_LOOPS": "false"}) as (process, server):
            visitor = Visitor(server, _key(home), process)
            visitor.settle()
            yield _processor_time(visitor)
        yield browsed(home, settings, ADDRESSES["instance"])
    yield Section(title="Memory of the server", figures=(idle, full))


def furnish(server: str, home: Path) -> None:
    """One of each thing that pages show, then all instances."""
    key = _key(home)
    with Client(server, key) as client:
        client.images.create(ImageRequest(name="base", recipe="base"))
        client.prices.set(BOOK)
        for name in PROJECTS[1:]:
            client.projects.create(ProjectRequest(name=name))
        _until(lambda: client.images.get("base").state == "ready")
        _until(lambda: bool(client.hosts.page(limit=1).items))
        furnish_one_of_each(client, home)
    for number in range(-(-INSTANCES // PER_ORDER)):
        with Client(server, key, project=PROJECTS[number % len(PROJECTS)]) as client:
            request = LaunchRequest(shape=ShapeRequest(gpu="V100"), instances=PER_ORDER)
            client.instances.launch(request)
    _until(lambda: all(_settled(server, key, name) for name in PROJECTS))
    with Client(server, key) as client:
        queue_launch(client)


def _settled(server: str, key: str, project: str) -> bool:
    with Client(server, key, project=project) as client:
        return not client.instances.page(limit=1, states=("starting", "queued")).items


def _pages(visitor: "Visitor") -> Section:
    return Section(
        title=f"Pages of the console, {INSTANCES:,} instances, {OFFERS:,} offers, p95 of {REPEATS}",
        figures=tuple(wall for wall, _ in _all_figures(visitor)),
        notes=(
            "Each figure is the 95th percentile of the whole response, over one connection,"
            f" {SETTLE_SECONDS:.0f} seconds after the start of the server and later.",
        ),
    )


def _processor_time(visitor: "Visitor") -> Section:
    return Section(
        title="The same, processor time of the server in the mean, without its loops",
        figures=tuple(spent for _, spent in _all_figures(visitor)),
        notes=("Other programs on the machine change these figures little.",),
    )


def _all_figures(visitor: "Visitor") -> Iterator[tuple[Figure, Figure]]:
    for what, path in pages().items():
        yield _figures(visitor, what, path, PAGE_MS_MAX)
    for what, path in FILTERS.items():
        yield _figures(visitor, what, path, FILTER_MS_MAX)


def pages() -> dict[str, str]:
    """Every page and part of a page, from the console's own table."""
    return {
        page.name: (PREFIX + page.path).format(**ADDRESSES) + QUERIES.get(page.name, "")
        for page in PAGES
        if page.method == "GET" and not page.stream and page.name not in ELSEWHERE
    }


class Visitor:
    """A browser's session without a browser."""

    def __init__(self, server: str, key: str, process: subprocess.Popen[bytes]) -> None:
        self._host = urlsplit(server).netloc
        self._process = process
        with Client(server, key) as client:
            link = client.console.make_link(ConsoleLinkRequest()).path
        self._connection = HTTPConnection(self._host, timeout=60)
        headers = {"Origin": server, "Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", link, body="", headers=headers)
        response = self._connection.getresponse()
        response.read()
        self._cookie = (response.getheader("set-cookie") or "").partition(";")[0]

    def get(self, path: str) -> float:
        """Milliseconds until the whole response is read."""
        began = time.perf_counter()
        try:
            response = self._asked(path)
        except RemoteDisconnected:  # the server closes idle connections
            self._connection.close()
            began = time.perf_counter()
            response = self._asked(path)
        content = response.read()
        took = (time.perf_counter() - began) * 1000
        if response.status != 200:
            raise Fault(f"{path}: {response.status} {content[:300]!r}")
        return took

    def _asked(self, path: str) -> HTTPResponse:
        self._connection.request("GET", path, headers={"Cookie": self._cookie, "HX-Request": "true"})
        return self._connection.getresponse()

    def spent(self) -> float:
        """Processor seconds of the server since its start."""
        return cpu_seconds(self._process.pid)

    def settle(self) -> None:
        """Wait until the offers are in memory, which the first question starts to load, and for the loops."""
        for _ in range(60):
            if self.get(FILTERS["filter: order by TFLOPS"]) < FILTER_MS_MAX:
                break
            time.sleep(0.5)
        time.sleep(SETTLE_SECONDS)


def _figures(visitor: Visitor, what: str, path: str, bar: float) -> tuple[Figure, Figure]:
    for _ in range(WARM_UP):
        visitor.get(path)
    before = visitor.spent()
    samples = sorted(visitor.get(path) for _ in range(REPEATS))
    spent = (visitor.spent() - before) * 1000 / REPEATS
    wall = Figure(what=what, unit="ms", samples=(samples[int(REPEATS * 0.95) - 1],), bar=bar)
    return wall, Figure(what=what, unit="ms", samples=(spent,), bar=bar)


def _memory(process: subprocess.Popen[bytes], what: str, bar: float) -> Figure:
    """The resident memory of the server with its processes."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return Figure(what=what, unit="MB", samples=(pages * os.sysconf("SC_PAGE_SIZE") / MIB,), bar=bar)


def _key(home: Path) -> str:
    return (home / "cloud" / "operator.key").read_text().strip()


def _until(holds: Callable[[], bool]) -> None:
    began = time.perf_counter()
    while not holds():
        if time.perf_counter() - began > SECONDS_MAX:
            raise Fault(f"not done after {SECONDS_MAX:g} seconds")
        time.sleep(0.5)
