"""A real server with the simulated engine, and Debian's chromium that visits it."""

import asyncio
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright
from tests.console.furnishing import furnish_hosts, furnish_networks, furnish_runs, furnish_storage
from tests.story.api_server import Server, running

from teraflock.console.page import PREFIX
from teraflock.console.pages.all import PAGES
from teraflock.tenant.admission import Scope
from teraflock.wire.console import ConsoleLinkRequest
from teraflock.wire.image import ImageRequest
from teraflock.wire.instance import LaunchRequest
from teraflock.wire.member import MemberRequest
from teraflock.wire.shape import ShapeRequest
from teraflock.wire.snapshot import SnapshotRequest

CHROMIUM = shutil.which("chromium")
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: see scripts/browser")
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
BOOK = (
    "- {from: 2026-01-01, currency: USD, gpu: {V100: 2.48/hour}, vcpu: 0.012/hour, ram: 0.003/hour, disk: 0.1/month,"
    " egress: 0.05}\n"
)
LEADING_ELSEWHERE = (
    "check_certificate",
    "open_console",
    "show_link",
    "begin_oidc",
    "finish_oidc",
    "begin_connecting",
)
SETTINGS = {
    "TERA_SIMULATED_HOSTS": "3x4xV100,1x0",
    "TERA_RATE_PER_SECOND": "0",
    "TERA_ADDRESS_POOL": "203.0.113.0/28",
    "TERA_SIGN_UP": "true",
}
WAIT_SECONDS_MAX = 120
WHOLE_PAGES = [
    page for page in PAGES if page.method == "GET" and not page.stream and page.name not in LEADING_ELSEWHERE
]
"""Pages to look at. Parts of pages are looked at within their page."""
PARTS = (
    "list_rows", "show_facts", "show_log", "show_quote", "show_daily_costs", "list_offer_rows", "calculate_offers",
    "show_price_history", "compare_buying", "sum_projects", "show_charged_days", "show_project_quota",
    "list_credits", "list_idle",
    "download_focus", "show_invoice",
    "quote_resize",
    "show_certificate", "list_orphans", "list_run_rows", "show_run_facts", "show_run_losses", "follow_run_log",
    "list_queue_rows", "list_alert_rows", "list_host_rows", "show_capacity", "show_host_facts", "show_host_readings",
    "show_instance_readings", "list_volume_rows", "quote_volume", "show_volume_facts",
    "list_dataset_rows",
    "list_joined", "show_balancer_facts", "check_reach", "draw_reach",
)  # fmt: skip
ADDRESSES = {
    "project": "default",
    "instance": "train",
    "snapshot": "before-upgrade",
    "host": "simulated-0001",
    "lesson": "run",
    "account": "none",
    "run": "vgg",
    "group": "web-servers",
    "acl": "border",
    "balancer": "web",
    "volume": "results",
    "dataset": "cifar10",
}


def addresses() -> dict[str, str]:
    """The address of every whole page, by its name."""
    return {
        page.name: (PREFIX + page.path).format(**ADDRESSES) for page in WHOLE_PAGES if page.name not in PARTS
    }


def public(name: str) -> bool:
    return next(page for page in PAGES if page.name == name).scope == Scope.PUBLIC


def wait_until(page: Page, condition: str, arg: object = None) -> None:
    """Wait until a function of JavaScript answers true.

    Playwright's `wait_for_function` evaluates its words in the page from the second look on, and the pages forbid that.
    """
    ends_at = time.monotonic() + WAIT_SECONDS_MAX
    while not _holds(page, condition, arg):
        assert time.monotonic() < ends_at, f"still not: {condition}"
        page.wait_for_timeout(50)


def _holds(page: Page, condition: str, arg: object) -> bool:
    try:
        return bool(page.evaluate(condition, arg))
    except Error as problem:
        if "context was destroyed" in str(problem):  # the page is being loaded again
            return False
        raise


@contextmanager
def furnished_server(home: Path) -> Iterator[Server]:
    """A server with prices, members and a few instances."""
    with running(home, **SETTINGS) as server:
        server.furnish()
        with server.client() as client:
            client.prices.set(BOOK)
            client.members.add(MemberRequest(name="ann@lab.example", role="member"))
            client.members.add(MemberRequest(name="bea@lab.example", role="viewer"))
            client.images.create(ImageRequest(name="jupyter", recipe="jupyter"))
            while client.images.get("jupyter").state != "ready":
                time.sleep(0.05)
            for name, gpus in (("train", 2), ("notebook", 1), ("sweep-a", 1), ("sweep-b", 1)):
                shape = ShapeRequest(gpu="V100", gpus=gpus)
                kind: Any = {"image": "jupyter", "access": "jupyter"} if name == "notebook" else {}
                client.instances.launch(LaunchRequest(name=name, shape=shape, **kind))
            client.instances.launch(LaunchRequest(name="web", shape=ShapeRequest(name="cpu-2")))
            for name in ("train", "notebook", "web", "sweep-a", "sweep-b"):
                client.instances.wait_until(name, "running")
            client.snapshots.create("train", SnapshotRequest(name="before-upgrade"))
            client.instances.stop("sweep-b")
            client.instances.wait_until("sweep-b", "stopped")
            furnish_networks(client)
            furnish_storage(client)
            furnish_runs(client)
            furnish_hosts(client, home)
        yield server


@contextmanager
def browsing(**options: Any) -> Iterator[Page]:
    """A page with cookies and storage of its own. Errors of scripts, and what the content-security policy refuses, fail
    the test."""
    faults: list[str] = []
    with SHARED.browser() as browser:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        try:
            page = context.new_page()
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("console", lambda told: faults.append(told.text) if _is_fault(told) else None)
            page.set_default_timeout(30_000)
            yield page
        finally:
            context.close()
    assert faults == []


class SharedBrowser:
    """One browser for all tests of a worker: it takes two seconds of processor time to start.

    Playwright's asyncio loop counts as running until it is stopped, and other loops of the thread refuse to run beside
    it. So it is hidden while nobody browses.
    """

    def __init__(self) -> None:
        self._open = ExitStack()
        self._browser: Browser | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def browser(self) -> Iterator[Browser]:
        asyncio._set_running_loop(self._loop)
        try:
            self._browser = self._browser or self._start()
            yield self._browser
        finally:
            self._loop = asyncio._get_running_loop()
            asyncio._set_running_loop(None)

    def close(self) -> None:
        asyncio._set_running_loop(self._loop)
        self._open.close()
        self._browser = self._loop = None
        asyncio._set_running_loop(None)

    def _start(self) -> Browser:
        playwright = sync_playwright().start()
        self._open.callback(playwright.stop)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        self._open.callback(browser.close)
        return browser


SHARED: Final = SharedBrowser()


def _is_fault(message: Any) -> bool:
    """A request that is refused on purpose also shows as an error: that one is tested by its page."""
    return message.type == "error" and not re.match("Failed to load resource", message.text)


def sign_in(page: Page, server: Server, member: str = "") -> None:
    """Sign in by a one-time link."""
    with server.client() as client:
        link = client.console.make_link(ConsoleLinkRequest(member=member))
    page.goto(server.url + link.path)
    page.locator("main form button.primary").first.click()
    page.wait_for_url("**/console/projects/**")
