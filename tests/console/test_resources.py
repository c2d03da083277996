"""Networks, runs, the queue, hosts and alerts in a real browser."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page
from tests.console.browser import NEEDS_CHROMIUM, browsing, furnished_server, sign_in, wait_until
from tests.console.furnishing import snapshot
from tests.story.api_server import Server

from teraflock.wire.published_port import PublishRequest

pytestmark = NEEDS_CHROMIUM
PROJECT = "/console/projects/default"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with furnished_server(tmp_path_factory.mktemp("resources")) as server:
        yield server


@pytest.fixture(scope="module")
def visitor(server: Server) -> Iterator[Page]:
    """One browser for all tests here: they only read, or change things of their own."""
    with browsing() as page:
        sign_in(page, server)
        yield page


def test_a_rule_decides_about_a_connection_until_it_is_revoked(server: Server, visitor: Page) -> None:
    page = visitor
    page.goto(f"{server.url}{PROJECT}/security-groups")
    page.fill("[name=name]", "api")
    page.get_by_role("button", name="Create group").click()
    page.wait_for_url("**/security-groups/api")
    page.fill("[name=instance]", "train")
    page.get_by_role("button", name="Attach").click()
    page.get_by_text("train is in the group now").wait_for()
    page.get_by_label("Protocol").select_option("tcp")
    page.fill("[name=ports]", "99999")
    page.fill("[name=peer]", "0.0.0.0/0")
    page.get_by_role("button", name="Add rule").click()
    page.locator(".notice.error").wait_for()
    assert page.input_value("[name=peer]") == "0.0.0.0/0", "what was typed stays"
    page.fill("[name=ports]", "9000-9010")
    page.get_by_role("button", name="Add rule").click()
    page.get_by_text("The rule is added").wait_for()
    with server.client() as client:
        client.published_ports.publish(PublishRequest(instance="train", guest_port=9005))
    assert verdict(page, server, "internet", "train", "9005").startswith("It passes.")
    assert page.locator("#verdict dd", has_text="api").count() == 1, "the rule that decides"
    page.goto(f"{server.url}{PROJECT}/security-groups/api")
    page.locator("tr", has_text="9000-9010").get_by_role("button", name="Revoke").click()
    page.get_by_text("The rule is revoked").wait_for()
    assert verdict(page, server, "internet", "train", "9005").startswith("It is stopped.")
    page.goto(f"{server.url}{PROJECT}/security-groups/api")
    page.get_by_role("button", name="Detach train").click()
    page.get_by_text("train is not in the group any more").wait_for()
    page.get_by_role("button", name="Delete the group").click()
    page.get_by_text("The security group api is deleted").wait_for()


def verdict(page: Page, server: Server, source: str, target: str, port: str) -> str:
    page.goto(f"{server.url}{PROJECT}/reach")
    page.fill("[name=source]", source)
    page.fill("[name=target]", target)
    page.fill("[name=port]", port)
    page.get_by_role("button", name="Check").click()
    found = page.locator("#verdict .notice")
    found.wait_for()
    return found.inner_text()


def test_the_tester_says_why_a_connection_is_stopped(server: Server, visitor: Page) -> None:
    stopped = verdict(visitor, server, "internet", "train", "8080")
    assert stopped.startswith("It is stopped.")
    assert "tera" in visitor.locator("#verdict .notice p").inner_text(), "what would let it pass"
    assert "no instance" in verdict(visitor, server, "<b>nobody</b>", "train", "22")
    assert visitor.locator("#verdict b").count() == 0


def test_the_picture_shows_all_ends(server: Server, visitor: Page) -> None:
    visitor.goto(f"{server.url}{PROJECT}/reach")
    picture = visitor.locator(".picture svg")
    picture.wait_for()
    names = picture.locator("text").all_text_contents()
    assert {"internet", "train", "web"} <= set(names)


def test_networks_subnets_and_acls_are_edited(server: Server, visitor: Page) -> None:
    page = visitor
    page.goto(f"{server.url}{PROJECT}/networks")
    page.get_by_placeholder("backend", exact=True).fill("lab")
    page.get_by_role("button", name="Create network").click()
    panel = page.locator("section.panel", has=page.get_by_role("heading", name=re.compile("^lab ")))
    panel.get_by_placeholder("Name of the subnet").fill("part")
    panel.get_by_role("button", name="Add subnet").click()
    page.get_by_text("The subnet part is created").wait_for()
    page.goto(f"{server.url}{PROJECT}/acls")
    page.fill("[name=name]", "gate")
    page.get_by_role("button", name="Create ACL").click()
    page.wait_for_url("**/acls/gate")
    assert page.input_value("[name=number]") == "100"
    page.fill("[name=peer]", "10.0.0.0/8")
    page.get_by_role("button", name="Add rule").click()
    page.get_by_text("Rule 100 is added").wait_for()
    page.locator("select[name=subnet]").select_option("lab/part")
    page.get_by_role("button", name="Attach").click()
    page.get_by_text("The ACL guards lab/part now").wait_for()
    page.get_by_role("button", name="Delete the ACL").click()
    assert "Detach" in page.locator(".notice.error").inner_text()
    page.get_by_role("button", name="Detach lab/part").click()
    page.get_by_role("button", name="Delete the ACL").click()
    page.get_by_text("The ACL gate is deleted").wait_for()
    page.goto(f"{server.url}{PROJECT}/networks")
    page.get_by_role("button", name="Delete lab").click()
    page.get_by_text("The network lab is deleted").wait_for()


def test_ports_addresses_and_backends_are_changed(server: Server, visitor: Page) -> None:
    page = visitor
    page.goto(f"{server.url}{PROJECT}/open-ports")
    page.fill("[name=instance]", "train")
    page.fill("[name=guest_port]", "6006")
    page.get_by_role("button", name="Publish").click()
    page.get_by_text("train can be reached at").wait_for()
    page.get_by_role("button", name="Close train 6006").click()
    page.get_by_text("The port is closed").wait_for()
    page.fill("[name=target]", "train")
    page.get_by_role("button", name="Attach").click()
    page.get_by_text("leads to train now").wait_for()
    page.get_by_role("button", name=re.compile("^Detach")).click()
    page.get_by_text("leads nowhere now").wait_for()
    page.goto(f"{server.url}{PROJECT}/balancers/web")
    page.fill("[name=instance]", "train")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("train is a backend now").wait_for()
    page.get_by_role("button", name="Remove train").click()
    page.get_by_text("train is not a backend any more").wait_for()


def test_a_run_shows_progress_log_and_losses_until_it_is_cancelled(server: Server, visitor: Page) -> None:
    page = visitor
    page.goto(f"{server.url}{PROJECT}/runs")
    page.locator("tr", has_text="vgg").locator("progress").wait_for()
    page.get_by_role("link", name="vgg").click()
    log = page.locator("#run-log")
    wait_until(page, "document.getElementById('run-log').textContent.includes('step ')")
    before = log.text_content() or ""
    wait_until(
        page, "before => document.getElementById('run-log').textContent.length > before", arg=len(before)
    )
    steps = re.findall(r"step (\d+)\n", log.text_content() or "")
    assert [int(each) for each in steps] == list(range(int(steps[0]), int(steps[0]) + len(steps))), "no gap"
    page.locator("#losses canvas").wait_for()
    assert page.locator("#losses-table tr").count() > 0
    assert "s" in page.locator("tr", has_text="Time of a step").inner_text()
    page.get_by_role("button", name="Cancel the run").click()
    page.locator("h1 .state.cancelled").wait_for()
    page.get_by_role("button", name="Continue from the last checkpoint").click()
    page.get_by_text("vgg is queued again").wait_for()
    page.locator("h1 .state.running").wait_for()


def test_the_queue_shows_places_to_the_tenant_and_all_to_the_operator(server: Server, visitor: Page) -> None:
    page = visitor
    page.goto(f"{server.url}{PROJECT}/queue")
    assert "1 / 1" in page.locator("tr", has_text="large").first.inner_text()
    assert page.locator("#everyone-title").count() == 1
    assert page.context.browser is not None
    with page.context.browser.new_context() as context:
        other = context.new_page()
        sign_in(other, server, "ann@lab.example")
        other.goto(f"{server.url}{PROJECT}/queue")
        assert other.locator("#everyone-title").count() == 0
        other.get_by_role("button", name="Cancel large").click()
        other.get_by_text("Nothing is waiting").wait_for()
    page.get_by_text("Nothing is waiting").wait_for()  # the page is live


def test_a_host_shows_charts_cards_and_holders_and_is_drained(server: Server, visitor: Page) -> None:
    page = visitor
    page.goto(f"{server.url}/console/hosts")
    page.locator("#capacity-title").wait_for()
    with server.client() as client:
        name = client.instances.get("train").host
    page.get_by_role("link", name=name).first.click()
    wait_until(page, "document.querySelectorAll('[data-reading] canvas').length === 4")
    with page.expect_response(re.compile("period=day")):
        page.get_by_role("button", name="Last day").click()
    held = page.locator("tbody tr", has=page.locator(".state.held")).first.inner_text()
    assert re.search("train|notebook|sweep|vgg", held), held
    page.get_by_role("button", name="Drain").click()
    page.locator("h1 .state.draining").wait_for()
    page.get_by_role("button", name="Use again").click()
    page.locator("h1 .state.ready").wait_for()


def test_alerts_name_what_is_wrong_now_and_what_happened(server: Server, visitor: Page) -> None:
    visitor.goto(f"{server.url}/console/alerts")
    now = visitor.locator(".notice.error").all_inner_texts()
    assert len(now) == 1, "the hot card has cooled down"
    assert "0000:02:00.0 of simulated-0001 stopped answering" in now[0]
    assert visitor.locator("tbody tr").count() == 5


def test_a_volume_is_created_launched_with_snapshot_restored_and_deleted(
    server: Server, visitor: Page
) -> None:
    page = visitor
    page.goto(f"{server.url}{PROJECT}/volumes")
    page.fill("[name=size_gb]", "50")
    page.get_by_text("5.00 USD per month").wait_for()
    page.fill("[name=name]", "kept")
    page.get_by_label("Copy it to another host").check()
    page.get_by_role("button", name="Create volume").click()
    page.wait_for_url("**/volumes/kept")
    page.locator(".tile", has_text="Last copy").wait_for()
    page.get_by_role("button", name="Stop copying").click()
    page.get_by_role("button", name="Copy it on a schedule").wait_for()
    page.goto(f"{server.url}{PROJECT}/launch")
    page.locator("[name=shape][value=cpu-1]").check()
    page.get_by_text("More options").click()
    page.get_by_label("kept").check()
    page.get_by_label("cifar10").check()
    page.fill("[name=name]", "holder")
    page.get_by_role("button", name="Launch instance").click()
    page.wait_for_url("**/instances/holder")
    page.locator("dd", has_text="cifar10").wait_for()
    page.get_by_role("link", name="kept").click()
    page.get_by_text("/volumes/kept", exact=True).wait_for()
    with server.client() as client:
        client.instances.wait_until("holder", "running")
        snapshot(client, "kept", "first")
    page.reload()
    page.get_by_role("button", name="Detach").click()
    page.locator(".state.free").wait_for()
    page.get_by_role("link", name="Restore first").click()
    page.get_by_text("You lose everything").wait_for()
    page.get_by_role("button", name="Restore").click()
    page.locator("h1 .state.free").wait_for()
    page.get_by_role("link", name="Delete", exact=True).click()
    page.get_by_text("its 50 GB with everything on it").wait_for()
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/volumes")


def test_an_instance_shows_charts_of_its_readings(server: Server, visitor: Page) -> None:
    page = visitor
    page.goto(f"{server.url}{PROJECT}/instances/train")
    page.locator("#readings .chart canvas").nth(4).wait_for(timeout=60_000)
    page.get_by_role("button", name="Last day").click()
    page.locator("[data-period=day][aria-pressed=true]").wait_for()


def test_a_dataset_is_deleted_after_saying_what_is_lost(server: Server, visitor: Page) -> None:
    page = visitor
    page.goto(f"{server.url}{PROJECT}/datasets")
    page.get_by_role("link", name="Delete imagenet").click()
    page.get_by_text("Files: 1, 11 B in total").wait_for()
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("Deleting the dataset imagenet").wait_for()
