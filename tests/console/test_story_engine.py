"""One day in the browser with real containers: plan, launch, type in the terminal, see the bill, delete.

The browser runs in the network of the sandbox: nothing else can reach the server there.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from tests.console.browser import NEEDS_CHROMIUM, browsing, wait_until
from tests.console.test_browser import SHOWS
from tests.engine.sandbox import Sandbox
from tests.story.real_cloud import RealCloud, engine_sandbox

pytestmark = [
    NEEDS_CHROMIUM,
    pytest.mark.long("a server, an engine and a browser; each page has its own tests on simulated hosts"),
]
BOOK = "- {from: 2026-01-01, currency: USD, gpu: {V100: 2.48/hour}, vcpu: 100/hour, ram: 1/hour, disk: 10/month}\n"
TYPED = 'echo "$(hostname) has $((6 * 7)) kernel $(uname -s)"'


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with engine_sandbox("console") as sandbox:
        yield sandbox


@pytest.fixture
def cloud(sandbox: Sandbox, tmp_path: Path) -> Iterator[RealCloud]:
    cloud = RealCloud(tmp_path / "home", sandbox)
    (tmp_path / "prices.yaml").write_text(BOOK)
    try:
        cloud.ok("up")
        cloud.ok("price", "set", tmp_path / "prices.yaml")
        yield cloud
    finally:
        cloud.run("purge", "--yes")


def test_plan_launch_terminal_bill_and_delete_on_a_real_engine(cloud: RealCloud, sandbox: Sandbox) -> None:
    link = cloud.ok("console", "link").out.strip()
    with sandbox.inside(), browsing() as page:
        page.set_default_timeout(120_000)
        page.goto(link)
        page.locator("main form button.primary").first.click()
        page.wait_for_url("**/console/projects/**")
        assert page.locator(".simulated").count() == 0
        plan(page)
        launch(page)
        assert cloud.guests() == {"lab"}
        type_in_terminal(page)
        see_the_bill(page)
        page.goto(re.sub("/costs.*", "/instances/lab", page.url))
        page.get_by_role("link", name="Delete").click()
        page.get_by_role("button", name="Delete").click()
        page.wait_for_url("**/instances")
        page.locator("#rows").get_by_text("lab", exact=True).wait_for(state="detached")
    assert cloud.guests() == set()
    assert cloud.ok("bill", "verify").code == 0


def plan(page: Page) -> None:
    page.get_by_role("link", name="Plan", exact=True).click()
    page.get_by_role("link", name="Try an example").click()
    page.locator("#plan-chart canvas").wait_for()
    assert page.locator("tbody tr").count() > 1, "ranked options"


def launch(page: Page) -> None:
    page.get_by_role("link", name="Instances", exact=True).click()
    page.get_by_role("link", name="Launch", exact=True).click()
    page.get_by_label("Custom").check()
    page.fill("[name=vcpus]", "1")
    page.fill("[name=ram_gb]", "1")
    page.fill("[name=name]", "lab")
    page.locator("#quote .price", has_text="USD").wait_for()
    page.get_by_text("More options").click()
    page.fill("[name=disk_gb]", "2")
    page.get_by_role("button", name="Launch instance").click()
    page.wait_for_url("**/instances/lab")
    page.locator("h1 .state.running").wait_for()


def type_in_terminal(page: Page) -> None:
    page.get_by_role("link", name="Open terminal").click()
    wait_until(page, SHOWS, arg="@lab:~#")
    page.keyboard.type(f"{TYPED}\n")
    wait_until(page, SHOWS, arg="\nlab has 42 kernel Linux\n")
    page.keyboard.type("exit\n")
    page.get_by_text("The shell ended").wait_for()


def see_the_bill(page: Page) -> None:
    """The instance costs 101 dollars an hour, so seconds are seen in the bill."""
    page.get_by_role("link", name="Costs", exact=True).click()
    page.wait_for_url("**/costs")
    total = page.locator(".tile", has_text="This month so far").locator(".value").inner_text()
    amount = re.match(r"[\d.,]+", total)
    assert amount, total
    assert float(amount[0].replace(",", "")) > 0
