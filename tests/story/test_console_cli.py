"""`tera up` and `tera console link` print links that sign in once; sessions are listed and ended."""

import re
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar

import pytest
from tests.story.cloud import Cloud


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    cloud = Cloud(tmp_path_factory.mktemp("console") / "home")
    try:
        yield cloud
    finally:
        cloud.run("down")


def opened(url: str) -> tuple[int, str]:
    """Open a sign-in link and press its button; the status and the text of the page that follows."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    origin = re.match(r"http://[^/]+", url)
    assert origin
    try:
        form = {"Origin": origin[0], "Content-Type": "application/x-www-form-urlencoded"}
        with browser.open(urllib.request.Request(url, data=b"", headers=form)) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


def test_a_link_signs_in_once_and_its_session_can_be_ended(cloud: Cloud) -> None:
    up = cloud.ok("up")
    printed = re.search(r"http://\S+/console/links/tera-link_\S+", up.out + up.err)
    assert printed, up
    status, page = opened(printed[0])
    assert (status, "No instances yet" in page) == (200, True)
    assert opened(printed[0])[0] == 401
    assert "operator" in cloud.ok("console", "sessions", columns=60).out
    session = cloud.ok("console", "sessions", "--json").json[0]
    assert session["address"] == "127.0.0.1"
    assert cloud.ok("console", "revoke", session["id"], "--json").json["revoked_at"]
    assert cloud.ok("console", "sessions", "--json").json == []
    assert "no such session" in cloud.fails("console", "revoke", "ses_0000000000000000").err


def test_owners_invite_members_and_members_only_themselves(cloud: Cloud) -> None:
    cloud.ok("up")
    cloud.ok("member", "add", "ann@lab", "--role", "viewer")
    invitation = cloud.ok("console", "link", "--member", "ann@lab").out.strip()
    assert "ann@lab" in opened(invitation)[1]
    key = cloud.ok("key", "create", "hers", "--member", "ann@lab", "--json").json["secret"]
    ann = cloud.as_user(key)
    refused = ann.fails("console", "link", "--member", "operator")
    assert "Only operators may change an operator" in refused.err
    assert ann.ok("console", "link", "--json").json["url"].startswith("http://")
    assert "There is no member `nobody`" in cloud.fails("console", "link", "--member", "nobody").err
