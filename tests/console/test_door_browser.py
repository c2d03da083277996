"""Ways into the console in a real browser: an identity provider, and sign-up."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page
from tests.console.browser import AXE, BOOK, NEEDS_CHROMIUM, browsing, sign_in
from tests.fakes.identity_provider import CLIENT, SECRET, FakeIdentityProvider
from tests.story.api_server import Server

from teraflock.wire.key import KeyRequest
from teraflock.wire.member import MemberRequest

pytestmark = NEEDS_CHROMIUM


@contextmanager
def open_server(home: Path) -> Iterator[Server]:
    secret = home / "secret"
    secret.write_text(SECRET)
    with FakeIdentityProvider() as provider:
        names = {
            "TERA_OIDC_ISSUER": provider.issuer, "TERA_OIDC_CLIENT_ID": CLIENT, "TERA_OIDC_NAME": "Lab account",
            "TERA_OIDC_CLIENT_SECRET_FILE": str(secret), "TERA_SIGN_UP": "true", "TERA_SIGN_UP_CREDIT": "10",
            "TERA_RATE_PER_SECOND": "0",  # more sign-ins than a minute allows from one address
        }  # fmt: skip
        server = Server(home, **names)
        server.more["TERA_CONSOLE_URL"] = server.url
        provider.return_to = f"{server.url}/console/sign-in/oidc/return"
        try:
            server.start()
            server.furnish()
            with server.client() as client:
                client.prices.set(BOOK)
                client.members.add(MemberRequest(name="ann@lab.example", role="member"))
            yield server
        finally:
            server.end()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with open_server(tmp_path_factory.mktemp("door")) as server:
        yield server


def test_a_member_signs_in_with_the_identity_provider(server: Server) -> None:
    with browsing() as page:
        page.goto(f"{server.url}/console/team")
        page.get_by_role("link", name="Sign in with Lab account").click()
        page.fill("[name=email]", "ann@lab.example")
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("button", name="as ann@lab.example").wait_for()
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
        page.get_by_role("button", name="as ann@lab.example").click()
        page.wait_for_url("**/console/team")
        page.get_by_role("button", name="Sign out").click()
        page.locator("#oidc").click()
        page.fill("[name=email]", "ann@lab.example")
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url("**/console/projects/**")
        page.goto(f"{server.url}/console/account")
        assert "ann@lab.example" in page.inner_text("section:has(#oidc-title)")


def test_a_stranger_signs_up_and_launches_on_the_credit(server: Server) -> None:
    with browsing(locale="zh-CN") as page:
        page.goto(f"{server.url}/console/sign-in")
        page.get_by_role("link", name="创建账户").click()
        assert "10.00 USD" in page.inner_text("main")
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
        page.fill("[name=user_name]", "bob@there.example")
        page.fill("[name=password]", "correct horse battery")
        page.get_by_role("button", name="创建账户").click()
        page.wait_for_url("**/console/projects/default/instances")
        page.goto(f"{server.url}/console/projects/default/launch")
        page.locator("form button.primary").click()
        page.locator("h1 .state.running").wait_for()


def send_without_session(page: Page, server: Server) -> None:
    """Fill in the form for a load balancer, and send it after the session ended."""
    sign_in(page, server)
    page.goto(f"{server.url}/console/projects/default/balancers")
    page.fill("[name=name]", "front")
    page.fill("[name=port]", "443")
    page.fill("[name=backends]", "web")
    page.select_option("[name=protocol]", "http")
    page.locator("details:has([name=publish]) > summary").last.click()
    page.check("[name=publish]")
    page.fill("[name=certificate]", "-----BEGIN CERTIFICATE-----")
    page.fill("[name=key]", "very private")
    page.context.clear_cookies(name="tera_session")
    page.get_by_role("button", name="Create load balancer").click()
    page.wait_for_url(re.compile("/console/sign-in.next="))
    assert "very private" not in page.evaluate("JSON.stringify(sessionStorage)")
    assert "front" not in page.url


def enter_by_key(page: Page, key: str, then: str = "balancers") -> None:
    """Sign in, and wait for the page that follows. The sign-in has the same page at the end of its query."""
    page.locator("details summary", has_text="API key").click()
    page.fill("[name=key]", key)
    page.get_by_role("button", name="Sign in with the key").click()
    page.wait_for_url(re.compile(f"^[^?]*/projects/default/{then}$"))


def test_a_form_is_filled_in_again_when_its_session_expired(server: Server) -> None:
    with browsing() as page:
        send_without_session(page, server)
        enter_by_key(page, server.operator_key)
        got = page.evaluate(
            "Object.fromEntries(new FormData(document.querySelector('main form:has([name=port])')))"
        )
        assert (got["name"], got["port"], got["protocol"]) == ("front", "443", "http")
        assert got["publish"]
        assert got["certificate"] == "-----BEGIN CERTIFICATE-----"
        assert got["key"] == "", "a private key is written again"
        page.reload()
        assert page.input_value("[name=name]") == "", "once"
        assert page.evaluate("sessionStorage.getItem('tera:typed')") is None


def test_a_script_for_the_first_start_is_not_kept_in_the_browser(server: Server) -> None:
    """It may hold secrets."""
    with browsing() as page:
        sign_in(page, server)
        page.goto(f"{server.url}/console/projects/default/launch")
        with page.expect_response(
            "**/projects/default/quote?*"
        ):  # one that comes later would lead to the sign-in before the click
            page.fill("[name=name]", "train")
        page.locator("details:has([name=user_data]) > summary").last.click()
        with page.expect_response("**/projects/default/quote?*"):
            page.fill("[name=user_data]", "export TOKEN=very-private")
        page.context.clear_cookies(name="tera_session")
        page.get_by_role("button", name="Launch instance").click()
        page.wait_for_url(re.compile("/console/sign-in.next="))
        kept = page.evaluate("JSON.stringify(sessionStorage)")
        assert "train" in kept
        assert "very-private" not in kept


def test_what_is_typed_is_kept_when_the_quote_finds_that_the_session_expired(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)
        with page.expect_response("**/projects/default/quote?*"):
            page.goto(f"{server.url}/console/projects/default/launch")
        page.context.clear_cookies(name="tera_session")
        page.fill("[name=name]", "train")
        page.wait_for_url(re.compile("/console/sign-in.next="))
        enter_by_key(page, server.operator_key, then="launch")
        assert page.input_value("[name=name]") == "train"


def test_a_page_that_renews_itself_keeps_a_form_only_if_somebody_typed(server: Server) -> None:
    with browsing() as page:
        sign_in(page, server)
        page.goto(f"{server.url}/console/projects/default/balancers")
        page.context.clear_cookies(name="tera_session")
        page.evaluate("htmx.ajax('GET', location.pathname, 'main')")
        page.wait_for_url(re.compile("/console/sign-in.next="))
        assert page.evaluate("sessionStorage.getItem('tera:typed')") is None


def test_another_member_does_not_see_what_was_typed(server: Server) -> None:
    with server.client() as client:
        key = client.keys.create(KeyRequest(name="ann", member="ann@lab.example")).secret
    with browsing() as page:
        send_without_session(page, server)
        enter_by_key(page, key)
        assert page.input_value("[name=name]") == ""
        assert page.evaluate("sessionStorage.getItem('tera:typed')") is None
