"""What a browser measures of the console: bytes of the first page, cold start to first paint, delay of live updates."""

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bench.cloud_api import cpu_seconds, serving
from bench.figures import Figure, Section
from teraflock.client import Client
from teraflock.wire.console import ConsoleLinkRequest

CHROMIUM: Final = shutil.which("chromium")
STARTS: Final = 5
UPDATES: Final = 9
FIRST_PAGE_KB_MAX: Final = 200
PAINT_SECONDS_MAX: Final = 1
LIVE_SECONDS_MAX: Final = 1
FILTER_MS_MAX: Final = 100
PAINTED: Final = """() => new Promise(done => {
  const found = performance.getEntriesByName('first-contentful-paint');
  if (found.length) return done(true);
  new PerformanceObserver((list, observer) => { observer.disconnect(); done(true); })
    .observe({type: 'paint', buffered: true});
})"""


FILTERED = """gpu => new Promise(done => {
  let began = 0;
  document.body.addEventListener('htmx:beforeRequest', () => { began = performance.now(); }, {once: true});
  document.body.addEventListener('htmx:afterSettle', () => done(performance.now() - began), {once: true});
  const field = document.querySelector('#filters [name=gpu]');
  field.value = gpu;
  field.dispatchEvent(new Event('input', {bubbles: true}));
})"""
"""Milliseconds from the request of a filter until the new rows are in the page."""
GPUS: Final = ("A100", "V100", "T4", "P100", "K80", "A6000", "RTX6000", "")
FILTERS: Final = 40


def browsed(home: Path, settings: Mapping[str, str], name: str) -> Section:
    title = "The console in chromium"
    if CHROMIUM is None:
        return Section(title=title, notes=("chromium is not installed: see scripts/browser",))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            starts, spent = zip(*(_start(browser, home, settings) for _ in range(STARTS)), strict=True)
            with serving(home, settings) as (_, server):
                first, updates, filters, filter_spent = _live(
                    browser, server, (home / "cloud" / "operator.key").read_text().strip(), name
                )
        finally:
            browser.close()
    return Section(
        title=title,
        figures=(
            Figure(
                what="sign-in and first page with all files, over the wire",
                unit="kB",
                samples=(first,),
                bar=FIRST_PAGE_KB_MAX,
            ),
            Figure(
                what="from the start of the server to the first paint",
                unit="s",
                samples=tuple(starts),
                bar=PAINT_SECONDS_MAX,
            ),
            Figure(
                what="the same, processor time of the server",
                unit="s",
                samples=tuple(spent),
                bar=PAINT_SECONDS_MAX,
            ),
            Figure(
                what="from a change to the list in the browser",
                unit="s",
                samples=tuple(updates),
                bar=LIVE_SECONDS_MAX,
            ),
            Figure(
                what=f"from a filter of offers to its rows in the browser, p95 of {FILTERS}",
                unit="ms",
                samples=(sorted(filters)[int(FILTERS * 0.95) - 1],),
                bar=FILTER_MS_MAX,
            ),
            Figure(
                what="the same, processor time of server and browser with the chart that follows, mean",
                unit="ms",
                samples=(filter_spent,),
                bar=FILTER_MS_MAX,
            ),
        ),
    )


def _start(browser: Any, home: Path, settings: Mapping[str, str]) -> tuple[float, float]:
    """Seconds from the start of the server's process until the sign-in page is painted, and processor seconds of the
    server in that time."""
    page = browser.new_page()
    try:
        began = time.perf_counter()
        with serving(home, settings) as (process, server):
            page.goto(f"{server}/console/sign-in")
            page.evaluate(PAINTED)
            return time.perf_counter() - began, cpu_seconds(process.pid)
    finally:
        page.close()


def _live(browser: Any, server: str, key: str, name: str) -> tuple[float, list[float], list[float], float]:
    """Kilobytes from the sign-in to the first page, the delays of live updates and of filters, and the processor time
    of a filter."""
    context = browser.new_context()
    page = context.new_page()
    sizes: list[int] = []
    count = lambda sent: sizes.append(_size(sent))  # noqa: E731  it is removed by its name
    page.on("requestfinished", count)
    with Client(server, key) as client:
        page.goto(server + client.console.make_link(ConsoleLinkRequest()).path)
        page.locator("main form button.primary").first.click()
        page.wait_for_url("**/instances")
        page.wait_for_load_state("load")
        first = sum(sizes) / 1000
        page.remove_listener("requestfinished", count)
        page.goto(f"{server}/console/projects/default/instances?name={name}")
        row = page.locator("tr", has_text=name)
        updates = []
        for turn in range(UPDATES):
            state = "stopped" if turn % 2 == 0 else "running"
            act = client.instances.stop if state == "stopped" else client.instances.start
            act(name)
            client.instances.wait_until(name, state)
            began = time.perf_counter()
            row.locator(f".state.{state}").wait_for()
            updates.append(time.perf_counter() - began)
        page.goto(f"{server}/console/offers")
        page.locator("#offers tbody tr").first.wait_for()
        before = _spent_by_children()
        filters = [page.evaluate(FILTERED, GPUS[turn % len(GPUS)]) for turn in range(FILTERS)]
        spent = (_spent_by_children() - before) * 1000 / FILTERS
    context.close()
    return first, updates, filters, spent


def _spent_by_children() -> float:
    """Processor seconds of all processes that this one started, such as the server and the browser."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = (int(fields[1]), int(fields[11]) + int(fields[12]))
    own, ticks = {os.getpid()}, 0
    while found := {pid for pid, (parent, _) in parents.items() if parent in own and pid not in own}:
        own |= found
        ticks += sum(parents[pid][1] for pid in found)
    return ticks / os.sysconf("SC_CLK_TCK")


def _size(sent: Any) -> int:
    sizes = sent.sizes()
    return int(sizes["responseHeadersSize"]) + int(sizes["responseBodySize"])
