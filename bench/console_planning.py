"""Measure the console's pages Offers, Plan, Costs and Learn on a server with 100,000 offers.

A real server runs in a separate process. The time is that of the whole response over one connection on loopback.
"""

import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.cloud_api import serving
from bench.figures import Figure, Section
from bench.processes import Fault, at_home, run_task
from teraflock.client import Client
from teraflock.wire.console import ConsoleLinkRequest

OFFERS: Final = 100_000
WARM_UP: Final = 5
REPEATS: Final = 40
PAGE_MS_MAX: Final = 50
FILTER_MS_MAX: Final = 100
COSTS: Final = "/console/projects/default/costs"
PAGES: Final = {
    "Offers": "/console/offers",
    "Plan": "/console/plan",
    "Costs": COSTS,
    "Costs, by project": f"{COSTS}/projects",
    "Learn": "/console/learn",
}
FILTERS: Final = {
    "filter: a card": "/console/offers/rows?gpu=A100",
    "filter: card, count, region, mode": "/console/offers/rows?gpu=A100&count=4%2B&region=us-&mode=on-demand",
    "filter: order by TFLOPS": "/console/offers/rows?sort=price-per-tflops",
    "filter: highest price": "/console/offers/rows?price_max=2",
    "calculator": "/console/offers/calculator?gpu=A100&count=8&hours=100",
}


def measure() -> Iterator[Section]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        run_task("bench.offer_tasks", "fill", str(OFFERS), env=at_home(home))
        with serving(home) as (_, server):
            key = (home / "cloud" / "operator.key").read_text().strip()
            visitor = Visitor(server, key)
            visitor.settle()
            pages = [_figure(visitor, what, path, PAGE_MS_MAX) for what, path in PAGES.items()]
            filters = [_figure(visitor, what, path, FILTER_MS_MAX) for what, path in FILTERS.items()]
    yield Section(
        title=f"Pages of the console, {OFFERS:,} offers, p95 of {REPEATS}",
        figures=(*pages, *filters),
        notes=("Each figure is the 95th percentile of the whole response, over one connection.",),
    )


class Visitor:
    """A browser's session without a browser."""

    def __init__(self, server: str, key: str) -> None:
        self._host = urlsplit(server).netloc
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
        self._connection.request("GET", path, headers={"Cookie": self._cookie, "HX-Request": "true"})
        response = self._connection.getresponse()
        content = response.read()
        took = (time.perf_counter() - began) * 1000
        if response.status != 200:
            raise Fault(f"{path}: {response.status} {content[:300]!r}")
        return took

    def settle(self) -> None:
        """Wait until the offers are in memory: the first question starts to load them."""
        for _ in range(60):
            if self.get(FILTERS["filter: order by TFLOPS"]) < FILTER_MS_MAX:
                return
            time.sleep(0.5)


def _figure(visitor: Visitor, what: str, path: str, bar: float) -> Figure:
    for _ in range(WARM_UP):
        visitor.get(path)
    samples = sorted(visitor.get(path) for _ in range(REPEATS))
    return Figure(what=what, unit="ms", samples=(samples[int(REPEATS * 0.95) - 1],), bar=bar)
