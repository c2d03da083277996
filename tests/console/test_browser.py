"""The console in a real browser: every page is accessible, stays on its server, and works."""

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route
from tests.console.browser import (
    AXE,
    NEEDS_CHROMIUM,
    addresses,
    browsing,
    furnished_server,
    public,
    sign_in,
    wait_until,
)
from tests.story.api_server import Server

from teraflock.tenant.session.rules import TOTP_SECONDS, totp_code

pytestmark = NEEDS_CHROMIUM
EVERY_PAGE = pytest.mark.long("every page; the fast part has every fourth")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with furnished_server(tmp_path_factory.mktemp("browser")) as server:
        yield server


@pytest.mark.parametrize(
    ("theme", "every"),
    [("light", 4), *(pytest.param(each, 1, marks=EVERY_PAGE) for each in ("light", "dark"))],
)
def test_every_page_is_accessible_fits_the_screen_and_stays_on_its_server(
    server: Server, theme: str, every: int
) -> None:
    astray: list[str] = []
    serious: dict[str, list[str]] = {}
    with browsing(color_scheme=theme) as page:
        page.add_init_script(path=AXE)
        page.on(
            "request", lambda sent: astray.append(sent.url) if not sent.url.startswith(server.url) else None
        )
        pages, signed_in = addresses(), False
        for name in sorted(pages, key=lambda name: (not public(name), name))[::every]:
            if not public(name) and not signed_in:
                sign_in(page, server)
                signed_in = True
            assert page.goto(server.url + pages[name]).status == 200, name  # type: ignore[union-attr]
            found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
            bad = [f"{each['id']}: {each['nodes'][0]['html'][:120]}" for each in found if _is_serious(each)]
            bad += [f"wider than {width} pixels" for width in (320, 1280) if not _fits(page, width)]
            if bad:
                serious[name] = bad
    assert serious == {}
    assert astray == []


COVERED = """() => [...document.querySelectorAll(".editable tbody tr")].flatMap(row => {
  const acts = row.lastElementChild, cells = [...row.children].slice(0, -1);
  return cells.filter(cell => {
    const text = document.createRange();
    text.selectNodeContents(cell);
    const left = acts.textContent.trim() ? acts.getBoundingClientRect().left : Infinity;
    return [...text.getClientRects()].some(each => each.width > 2 && each.right > left + 1);
  }).map(cell => cell.textContent);
})"""
"""Cells of which the column with the buttons, which stays in sight, covers a part."""


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN", "ja-JP"])
def test_buttons_cover_no_text_on_a_phone(server: Server, locale: str) -> None:
    pages = addresses()
    with browsing(viewport={"width": 390, "height": 844}, locale=locale) as page:
        sign_in(page, server)
        for name in ("list_networks", "show_security_group", "show_acl", "list_open_ports", "show_balancer"):
            page.goto(server.url + pages[name])
            assert page.locator(".editable tbody tr").count(), name
            assert page.evaluate(COVERED) == [], name


def _fits(page: Page, width: int) -> bool:
    page.set_viewport_size({"width": width, "height": 740})
    fits = f"document.documentElement.scrollWidth <= {width}"
    if not page.evaluate(fits):
        page.wait_for_timeout(500)  # charts adapt in the next frame
    return bool(page.evaluate(fits))


def _is_serious(violation: dict[str, str]) -> bool:
    return violation["impact"] in ("serious", "critical")


def test_the_launch_button_stays_where_it_is_when_the_price_comes(server: Server) -> None:
    """Otherwise a click at that moment goes to the price."""
    with browsing() as page:
        sign_in(page, server)
        held: list[Route] = []
        page.route("**/quote?*", lambda route: held.append(route))  # playwright sets attributes on it
        page.get_by_role("link", name="Launch", exact=True).click()
        button = page.get_by_role("button", name="Launch instance")
        before = button.bounding_box()
        page.locator("#quote .hint").wait_for()
        page.wait_for_timeout(500)  # the request is sent after the page is loaded
        assert "shape=" in held[0].request.url
        for secret in ("csrf", "user_data", "keys", "command"):
            assert secret not in held[0].request.url, "addresses are in the logs of proxies"
        held[0].continue_()
        page.locator("#quote .price").wait_for()
        assert button.bounding_box() == before


def test_from_a_sign_in_link_to_a_running_instance_in_four_clicks(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)  # the first click
        page.get_by_role("link", name="Launch", exact=True).click()
        page.get_by_role("button", name="Launch instance").click()
        page.wait_for_url("**/instances/*")
        page.locator("h1 .state.running").wait_for(
            timeout=15_000
        )  # by an event: the page asks again after 20 s
        name = page.url.rpartition("/")[2]
        page.get_by_role("link", name="Delete").click()
        assert "its disk of" in page.inner_text("main")
        page.get_by_role("button", name="Delete").click()
        page.wait_for_url("**/instances")
        page.locator("#rows").get_by_text(name).wait_for(state="detached")


def test_the_list_changes_when_something_happens_elsewhere(server: Server) -> None:
    with browsing() as page, server.client() as client:
        sign_in(page, server)
        row = page.locator("tr", has_text="sweep-a")
        row.locator(".state.running").wait_for()
        with page.expect_response(re.compile("/instances-rows")):
            client.instances.stop("sweep-a")
        row.locator(".state.stopped").wait_for()
        row.locator("a").focus()
        client.instances.start("sweep-a")
        row.locator(".state.running").wait_for()
        assert page.evaluate("document.activeElement.textContent") == "sweep-a", "the focus stays"


def test_the_price_follows_the_form(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)
        page.goto(f"{server.url}/console/projects/default/launch")
        before = page.inner_text("#quote .price")
        with page.expect_response(re.compile("/quote")):
            page.get_by_label("2× V100-SXM2").check()
        wait_until(page, "before => document.querySelector('#quote .price').innerText !== before", arg=before)
        page.get_by_label("Custom").check()
        page.fill("[name=gpu]", "no such card")
        page.get_by_text("no such card").wait_for()


def test_the_list_filters_as_you_type(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)
        page.fill("input[type=search]", "swe")
        page.locator("tr", has_text="train").wait_for(state="detached")
        assert page.locator("tbody tr").count() == 2
        page.fill("input[type=search]", "nothing-like-it")
        page.get_by_text("No instance matches").wait_for()


def test_pages_work_with_the_keyboard_alone(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Launch"
        page.keyboard.press("Enter")
        page.wait_for_url("**/launch")


def test_a_phone_shows_the_open_tab(server: Server) -> None:
    with browsing(viewport={"width": 390, "height": 844}) as page:
        sign_in(page, server)
        page.goto(f"{server.url}/console/projects/default/reach")
        box = page.locator(".tabs [aria-current]").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert page.evaluate("scrollY") == 0


def test_the_language_is_that_of_the_browser_and_can_be_changed(server: Server) -> None:
    with browsing(locale="zh-CN") as page:
        page.goto(f"{server.url}/console/sign-in")
        assert page.get_attribute("html", "lang") == "zh-Hans"
        assert page.inner_text("h1") == "登录"
        page.get_by_role("button", name="English").click()
        assert page.inner_text("h1") == "Sign in"


def test_a_password_and_a_code_sign_in_until_the_session_is_ended(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server, "ann@lab.example")
        page.goto(f"{server.url}/console/account")
        page.fill("[name=password]", "correct horse battery")
        page.fill("[name=again]", "correct horse battery")
        page.get_by_role("button", name="Set password").click()
        secret, step = page.inner_text("#totp"), int(time.time()) // TOTP_SECONDS
        factor = page.locator("section:has(#totp-title)")
        factor.locator("[name=code]").fill(totp_code(secret, step))
        factor.locator("[name=current]").fill("correct horse battery")
        factor.get_by_role("button", name="Turn on").click()
        page.get_by_text("The second factor is on").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.fill("[name=user_name]", "ann@lab.example")
        page.fill("[name=password]", "wrong horse battery")
        page.locator("form button.primary").click()
        assert "Wrong user name, password or code" in page.inner_text("main")
        for code in ("", totp_code(secret, step)):  # none, and the one that was used already
            page.fill("[name=password]", "correct horse battery")
            page.fill("[name=code]", code)
            page.locator("form button.primary").click()
            assert "Wrong user name, password or code" in page.inner_text("main")
        page.fill("[name=password]", "correct horse battery")
        page.fill("[name=code]", totp_code(secret, step + 1))
        page.locator("form button.primary").click()
        page.wait_for_url("**/instances")
        with server.client() as client:
            for session in client.console.list():
                client.console.revoke(session.id)
        page.reload()
        page.wait_for_url("**/console/sign-in**")


def test_hostile_names_are_shown_as_text(server: Server, tmp_path: Path) -> None:
    hostile = "<img/src=x/onerror=alert(1)>"
    with browsing() as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        sign_in(page, server)
        page.goto(f"{server.url}/console/team")
        page.fill("[name=name]", hostile)
        page.get_by_role("button", name="Create the invitation").click()
        member = page.locator("tbody th", has_text=hostile)
        member.first.wait_for()
        assert member.count() == 1
        page.goto(f"{server.url}/console/team/keys")
        page.fill("[name=name]", "<b>'\"&")
        page.get_by_role("button", name="Create key").click()
        key = page.locator("tbody th", has_text="<b>'\"&")
        key.first.wait_for()
        assert key.count() == 1
        page.goto(f"{server.url}/console/team/audit")
        assert page.locator("main img, main b").count() == 0


LINES = """count => {
  const buffer = teraTerminal.buffer.active, found = [];
  for (let at = Math.max(0, buffer.length - count); at < buffer.length; at++)
    found.push(buffer.getLine(at).translateToString(true));
  return found.join("\\n");
}"""
SHOWS = f"words => window.teraTerminal && ({LINES})(80).includes(words)"


LONG_PASTE = (f"echo {'a' * 506}\n" * 64)[: 32_768 - 9] + "\necho xx🙂\n"
"""Longer than one request, with the halves of an emoji on both sides of 32,768 characters."""


def test_the_terminal_types_pastes_resizes_and_draws_ten_megabytes(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)
        page.goto(f"{server.url}/console/projects/default/instances/train/terminal")
        wait_until(page, SHOWS, arg="train (SIMULATED):~#")
        page.keyboard.type("hostname\n")
        wait_until(page, SHOWS, arg="hostname\ntrain\n")
        page.keyboard.insert_text("echo größer 世界 🙂")
        page.keyboard.press("Enter")
        wait_until(page, SHOWS, arg="\ngrößer 世界 🙂\n")
        page.set_viewport_size({"width": 700, "height": 600})
        wait_until(page, "() => teraTerminal.cols < 90")
        columns, rows = page.evaluate("[teraTerminal.cols, teraTerminal.rows]")
        page.evaluate("text => teraTerminal.paste(text)", "stty size\n")
        wait_until(page, SHOWS, arg=f"\n{rows} {columns}\n")
        page.evaluate("text => teraTerminal.paste(text)", LONG_PASTE)
        wait_until(page, SHOWS, arg="xx🙂\n")
        assert "\ufffd" not in page.evaluate(LINES, 200)
        page.keyboard.type("seq 1400000\n")
        wait_until(page, SHOWS, arg="\n1399999\n1400000\n")
        page.keyboard.type("exit\n")
        page.get_by_text("The shell ended").wait_for()
        page.keyboard.press("Enter")
        page.get_by_text("Connected").wait_for()
        page.goto(f"{server.url}/console/projects/default/instances/sweep-b/terminal")
        page.get_by_text("cannot open a terminal now: it is stopped").wait_for()


def test_a_double_click_sends_a_form_once(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)
        page.goto(f"{server.url}/console/projects/default/networks")
        page.fill("main section:last-of-type [name=name]", "twice")
        page.get_by_role("button", name="Create network").dblclick()
        page.get_by_text("The network twice is created").wait_for()
        assert page.locator(".notice.error").count() == 0


def test_the_terminal_comes_back_after_the_server_was_killed(tmp_path: Path) -> None:
    with furnished_server(tmp_path) as server, browsing() as page:
        sign_in(page, server)
        page.goto(f"{server.url}/console/projects/default/instances/train/terminal")
        wait_until(page, SHOWS, arg="train (SIMULATED):~#")
        server.end(signal.SIGKILL)
        page.get_by_text("Connection lost").wait_for()
        server.start()
        wait_until(page, SHOWS, arg="This is a new shell.")
        page.keyboard.type("nproc\n")
        page.get_by_text("Connected").wait_for()
        with server.client() as client:
            entries = client.audit.page().items
        assert sum(each.action == "instance.terminal" for each in entries) == 2


def test_an_instance_is_changed_on_its_page_which_says_what_that_costs(server: Server) -> None:
    with browsing() as page, server.client() as client:
        sign_in(page, server)
        home = f"{server.url}/console/projects/default/instances/web"
        page.goto(home)
        page.get_by_text("Snapshots are free").wait_for()
        page.fill("[name=vcpus]", "3")
        page.get_by_text("per hour after the change").wait_for()
        page.fill("[name=vcpus]", "three")
        page.get_by_text("is not a whole number").wait_for()
        page.fill("[name=vcpus]", "3")
        page.get_by_role("button", name="Resize").click()
        page.locator(".facts dd", has_text="3").first.wait_for()
        assert client.instances.wait_until("web", "running").shape.vcpus == 3
        page.goto(home)
        page.fill("[name=guest_port]", "8080")
        page.get_by_role("button", name="Publish").click()
        published = page.locator("section:has(#ports-title) li", has_text="port 8080 of")
        (port,) = [
            each.port for each in client.published_ports.list(instance="web") if each.guest_port == 8080
        ]
        assert f":{port}" in published.inner_text()
        published.get_by_role("button", name="Close").click()
        page.get_by_text("The port is closed").wait_for()
        assert port not in [each.port for each in client.published_ports.list(instance="web")]
        page.fill("[name=guest_port]", "99999")
        page.get_by_role("button", name="Publish").click()
        page.locator(".notice.error").wait_for()


def test_a_snapshot_is_restored_and_deleted_after_saying_what_is_lost(server: Server) -> None:
    with browsing() as page, server.client() as client:
        sign_in(page, server)
        page.goto(f"{server.url}/console/projects/default/instances/notebook")
        page.locator("section:has(#snapshots-title) [name=name]").fill("first")
        page.get_by_role("button", name="Create snapshot").click()
        page.get_by_role("link", name="Restore first").click()
        assert "You lose everything that was written to it since then" in page.inner_text("main")
        page.get_by_role("link", name="Cancel").click()
        client.instances.wait_until("notebook", "running")
        page.get_by_role("link", name="Restore first").click()
        page.get_by_role("button", name="Restore").click()
        page.wait_for_url("**/instances/notebook")
        client.instances.wait_until("notebook", "running")
        page.reload()
        page.get_by_role("link", name="Delete first").click()
        page.get_by_role("button", name="Delete").click()
        page.get_by_text("The snapshot is deleted").wait_for()
        page.goto(f"{server.url}/console/projects/default/instances/notebook/snapshots/first/delete")
        assert "There is no such snapshot" in page.inner_text("main")
