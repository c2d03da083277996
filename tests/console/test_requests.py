"""What every page keeps to: headers, cookies, limits, errors, and what it must not reveal."""

import asyncio
import html
import re
import sqlite3
import threading
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.asking import SETTINGS, Tenants, furnish
from tests.console.visiting import HOST, ConsoleServer

from teraflock.app.argon2_passwords import Argon2Passwords
from teraflock.base.errors import BadInput
from teraflock.console.cookies import is_own_origin, parse_cookies
from teraflock.console.pages import terminal
from teraflock.console.pages.sign_in import safe_next
from teraflock.console.request import parse_form
from teraflock.instance.terminal.model import OpenTerminal
from teraflock.instance.terminal.service import READERS_MAX
from teraflock.tenant.key.secret import id_of
from teraflock.tenant.model import Role
from teraflock.wire.announcement import AnnouncementRequest
from teraflock.wire.console import ConsoleLinkRequest

LIST = "/console/projects/default/instances"


@pytest.fixture
def owner(console: ConsoleServer, tenants: Tenants) -> str:
    return console.session(tenants.keys["owner"])


def test_every_page_has_a_strict_policy_and_no_inline_script_or_style(
    unchanged: ConsoleServer, tenants: Tenants
) -> None:
    session = unchanged.session(tenants.keys["owner"])
    for target in ("/console/sign-in", LIST, f"{LIST}/web", "/console/team", "/console/no-such-page"):
        page = unchanged.get(target, session)
        policy = page.header("content-security-policy")
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert page.header("x-content-type-options") == "nosniff"
        assert page.header("cache-control") == "no-store"
        assert re.findall(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|javascript:", page.text) == []


def test_files_of_the_api_are_saved_and_never_shown(unchanged: ConsoleServer, tenants: Tenants) -> None:
    session = unchanged.session(tenants.keys["owner"])
    file = unchanged.get("/console/projects/default/costs/focus", session)
    assert (file.status, file.header("content-disposition")) == (200, "attachment")
    refused = unchanged.get("/console/projects/default/runs/nothing/outputs", session)
    for answer in (file, refused):
        assert answer.header("x-content-type-options") == "nosniff"
        assert "sandbox" in answer.header("content-security-policy")
        assert answer.header("cache-control") == "no-store"


def test_the_cookie_of_a_session_is_out_of_reach_of_scripts(console: ConsoleServer, tenants: Tenants) -> None:
    done = console.post("/console/sign-in", form={"key": tenants.keys["owner"]})
    assert done.status == 303
    cookie = next(value for name, value in done.headers if name == "set-cookie")
    assert cookie.startswith("tera_session=tera-session_")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert console.get(LIST, done.cookies["tera_session"]).status == 200


def test_signing_out_ends_the_session_on_the_server(console: ConsoleServer, owner: str) -> None:
    assert console.post("/console/sign-out", owner).cookies["tera_session"] == ""
    assert console.get(LIST, owner).header("location") == f"/console/sign-in?next={LIST}"


def test_a_form_of_another_site_signs_nobody_in(console: ConsoleServer, tenants: Tenants) -> None:
    for headers in (
        {"origin": "http://evil.test"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
    ):
        done = console.post("/console/sign-in", form={"key": tenants.keys["owner"]}, headers=headers)
        assert done.status == 403, headers
        assert "tera_session" not in done.cookies


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/console/team", "/console/team"),
        ("https://evil.test/", ""),
        ("//evil.test/console/", ""),
        ("/console/\\evil.test", ""),
        ("/console/\r\nset-cookie: a=b", ""),
        ("/v1/keys", ""),
        ("", ""),
    ],
)
def test_sign_in_leads_only_to_pages_of_this_console(path: str, expected: str) -> None:
    assert safe_next(path) == expected


def test_a_sign_in_returns_to_the_page_with_its_query(console: ConsoleServer, tenants: Tenants) -> None:
    """So a link to a plan or to filtered offers can be shared."""
    target = "/console/plan?model=resnet50&batch=64&region=us-%2Ceu-"
    asked = console.get(target)
    assert asked.header("location") == f"/console/sign-in?next={quote(target)}"
    form = console.get(asked.header("location"))
    hidden = re.search(r'name="next" value="([^"]+)"', form.text)
    assert hidden
    assert html.unescape(hidden[1]) == target
    done = console.post(
        "/console/sign-in", form={"key": tenants.keys["owner"], "next": html.unescape(hidden[1])}
    )
    assert done.header("location") == target
    long = console.get(f"/console/plan?config={'x' * 9_000}").header("location")
    assert long == "/console/sign-in", "a header has its limits"


def test_a_session_that_ended_returns_to_the_page_not_to_its_part(unchanged: ConsoleServer) -> None:
    page = f"http://{HOST}{LIST}?state=running"
    part = unchanged.get(f"{LIST}-rows?state=running", hx_request="true", hx_current_url=page)
    assert (part.status, part.header("hx-redirect")) == (
        401,
        f"/console/sign-in?next={quote(f'{LIST}?state=running')}",
    )
    for foreign in (f"http://evil.test{LIST}", "http://[", "javascript:x", f"//evil.test{LIST}"):
        part = unchanged.get(f"{LIST}-rows", hx_request="true", hx_current_url=foreign)
        assert part.header("hx-redirect") == "/console/sign-in", foreign


def test_a_choice_of_the_language_stays_on_the_page(console: ConsoleServer, owner: str) -> None:
    assert f'name="next" value="{LIST}?state=running"' in console.get(f"{LIST}?state=running", owner).text
    wrong = console.post(
        "/console/account/password",
        owner,
        {"password": "x"},
        headers={"referer": f"http://{HOST}/console/account"},
    )
    assert 'name="next" value="/console/account"' in wrong.text, "not the address of the action"


def test_wrong_sign_ins_say_the_same_and_are_slowed_down(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, rate_per_second=200)
    server = ConsoleServer(tmp_path / "home", settings)
    try:
        told = set()
        for attempt in range(40):  # on a busy machine, an attempt may become free meanwhile
            page = server.post("/console/sign-in", form={"user_name": f"user-{attempt}", "password": "wrong"})
            if page.status == 429:
                break
            assert page.status == 401
            told.add(re.sub(r"user-\d+", "user", page.words))
        assert (page.status, "Too many requests to sign in" in page.words) == (429, True)
        assert (attempt >= 10, len(told)) == (True, 1)
    finally:
        server.close()


def test_sign_ins_that_succeed_do_not_count_against_their_address(tmp_path: Path) -> None:
    """Many people share the address of a lab."""
    home = tmp_path / "home"
    keys = furnish(home).keys
    server = ConsoleServer(home, msgspec.structs.replace(SETTINGS, rate_per_second=200))
    try:
        made = [server.post("/console/sign-in", form={"key": keys["owner"]}).status for _ in range(25)]
        assert made == [303] * 25
        failed = [
            server.post("/console/sign-in", form={"key": keys["owner"] + "x"}).status for _ in range(40)
        ]
        assert 429 in failed
    finally:
        server.close()


def test_every_page_shows_what_operators_announce_to_this_organisation(
    console: ConsoleServer, tenants: Tenants
) -> None:
    def announced(who: str, target: str = LIST) -> list[str]:
        text = console.get(target, console.session(tenants.keys[who])).text
        return re.findall(r"announcement\" role=\"note\"><strong>\w+</strong> (.*)</p>", text)

    def announce(text: str, organisation: str = "") -> None:
        body = AnnouncementRequest(text=text, organisation=organisation)
        assert console.ask("POST", "/v1/announcements", tenants.keys["operator"], body=body).status == 201

    announce("<b>Only</b> for acme", "acme")
    assert announced("owner") == ["&lt;b&gt;Only&lt;/b&gt; for acme", "Welcome"]
    assert announced("viewer", "/console/projects/default/costs") == announced("owner")
    assert (announced("other"), announced("operator", "/console/hosts")) == (["Welcome"], [])
    for _ in range(5):
        announce("the latest news")
    assert announced("owner") == ["the latest news"] * 3, "no more, or they hide the page"


def test_a_link_is_shown_before_it_is_used_and_works_once(console: ConsoleServer, tenants: Tenants) -> None:
    made = console.ask("POST", "/v1/console/links", tenants.keys["owner"], body=ConsoleLinkRequest()).json
    for _ in range(2):
        assert "Sign in as owner@acme" in console.get(made["path"]).words
    done = console.post(made["path"])
    assert console.get(LIST, done.cookies["tera_session"]).status == 200
    again = console.post(made["path"])
    assert (again.status, "tera_session" in again.cookies) == (401, False)
    assert console.get(made["path"]).status == 404


def test_an_invitation_sets_a_password_that_signs_in(
    console: ConsoleServer, tenants: Tenants, owner: str
) -> None:
    page = console.post("/console/team/members", owner, {"name": "new@acme", "role": "viewer"})
    link = re.search(rf"http://{HOST}(/console/links/\S+?)<", page.text)
    assert link
    weak = console.post(link[1], form={"user_name": "new@acme", "password": "short"})
    assert (weak.status, "too short" in weak.words) == (422, True)
    console.post(link[1], form={"user_name": "new@acme", "password": "long enough for me"})
    done = console.post("/console/sign-in", form={"user_name": "New@Acme", "password": "long enough for me"})
    session = done.cookies["tera_session"]
    assert console.get(LIST, session).status == 200
    assert "Launch" not in console.get(LIST, session).words
    assert console.post(f"{LIST}/web/stop", session).status == 403


def test_static_files_are_cached_for_ever_and_nothing_else_is_served(unchanged: ConsoleServer) -> None:
    page = unchanged.get("/console/sign-in").text
    for address in re.findall(r'(?:src|href)="(/console/static/[^"]+)"', page):
        file = unchanged.get(address)
        assert (file.status, "immutable" in file.header("cache-control")) == (200, True), address
    for path in ("/console/static/", "/console/static/../asgi.py", "/console/static/x/%2e%2e/%2e%2e/asgi.py"):
        assert unchanged.get(path).status == 404


def test_the_api_answers_beside_the_console_as_before(unchanged: ConsoleServer, tenants: Tenants) -> None:
    assert unchanged.ask("GET", "/v1/health").status == 200
    assert unchanged.ask("GET", "/consoles").code == "not_found"
    assert unchanged.ask("GET", "/v1/keys").code == "not_authenticated"
    assert unchanged.get("/").header("location") == "/console/"
    session = unchanged.session(tenants.keys["owner"])
    assert unchanged.ask("GET", "/v1/keys", headers={"cookie": f"tera_session={session}"}).status == 401, (
        "a cookie opens no API"
    )


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("/console/nothing", "There is no such page"),
        ("/console/projects/nothing/instances", "no such project"),
        (f"{LIST}/nothing", "no instance"),
        (f"{LIST}/{'x' * 300}", "There is no such page"),
        (f"{LIST}?after=%00", "not text"),
        (f"{LIST}?state=%ff", "cannot be read"),
        (f"{LIST}?after=!!!", "Invalid query"),
    ],
)
def test_errors_are_pages_with_a_sentence(
    unchanged: ConsoleServer, tenants: Tenants, target: str, words: str
) -> None:
    page = unchanged.get(target, unchanged.session(tenants.keys["owner"]))
    assert page.status in (400, 404, 422)
    assert words.lower() in page.words.lower()
    assert "Traceback" not in page.text


@pytest.fixture(scope="module")
def others(unchanged: ConsoleServer, tenants: Tenants) -> str:
    return unchanged.session(tenants.keys["other"])


def test_ids_of_another_tenant_look_like_ids_that_do_not_exist(
    unchanged: ConsoleServer, tenants: Tenants, others: str
) -> None:
    ids = tenants.ids
    for real, made_up in (
        (f"/console/projects/{ids['project']}/instances", "/console/projects/prj_0000000000000000/instances"),
        (f"{LIST}/{ids['instance']}", f"{LIST}/ins_0000000000000000"),
        (f"{LIST}/{ids['instance']}/delete", f"{LIST}/ins_0000000000000000/delete"),
    ):
        seen, absent = unchanged.get(real, others), unchanged.get(made_up, others)
        assert seen.status == absent.status == 404
        assert seen.words.replace(ids["instance"], "ins_0000000000000000") == absent.words


def test_an_error_of_an_action_is_shown_on_its_page_with_what_was_typed(
    console: ConsoleServer, owner: str
) -> None:
    form = {"shape": "custom", "vcpus": "2", "name": "web", "labels": "team=red"}
    page = console.post("/console/projects/default/launch", owner, form)
    assert page.status == 409
    assert "web" in page.words
    assert 'value="team=red"' in page.text
    wrong = console.post("/console/projects/default/launch", owner, {**form, "vcpus": "two"})
    assert (wrong.status, "not a whole number" in wrong.words) == (422, True)
    quotes = {"access": "command", "command": "sh -c 'x"}
    assert (
        "cannot be read" in console.post("/console/projects/default/launch", owner, {**form, **quotes}).words
    )


def test_sending_a_launch_form_twice_launches_once(console: ConsoleServer, owner: str) -> None:
    form = {"shape": "custom", "vcpus": "1", "once": "a1b2c3"}
    first, second = (console.post("/console/projects/default/launch", owner, form) for _ in range(2))
    assert first.status == second.status == 303
    assert first.header("location") == second.header("location")
    changed = console.post("/console/projects/default/launch", owner, {**form, "vcpus": "2"})
    assert changed.status == 303, "the reader went back and changed the form"
    assert changed.header("location") != first.header("location")


def test_a_body_that_is_no_form_is_refused(console: ConsoleServer, owner: str) -> None:
    page = console.post(f"{LIST}/web/stop", owner, headers={"content-type": "application/json"})
    assert (page.status, "not a form" in page.words) == (422, True)
    large = console.post("/console/projects/default/launch", owner, {"user_data": "x" * 1_100_000})
    assert (large.status, "larger than" in large.words) == (422, True)
    assert console.get(f"{LIST}/web/stop", owner).status == 422


def test_a_head_request_has_no_body(unchanged: ConsoleServer) -> None:
    page = unchanged._visit("HEAD", "/console/sign-in", "", b"", {})
    assert (page.status, page.body) == (200, b"")


def test_hostile_names_are_escaped_everywhere(console: ConsoleServer, owner: str) -> None:
    hostile = "<script>alert(1)</script>"
    console.post("/console/team/members", owner, {"name": hostile, "role": "viewer"})
    console.post("/console/team/keys", owner, {"name": hostile})
    console.post(
        "/console/projects/default/launch",
        owner,
        {"shape": "custom", "vcpus": "1", "name": "x", "labels": f"a={hostile}"},
    )
    for target in ("/console/team", "/console/team/keys", "/console/team/audit", f"{LIST}/x", LIST):
        page = console.get(target, owner)
        assert "<script>alert" not in page.text, target
    agent = console.post(
        "/console/sign-in", form={"user_name": hostile, "password": hostile}, headers={"user-agent": hostile}
    )
    assert "<script>alert" not in agent.text
    assert "<script>alert" not in console.get(f"{LIST}?name={hostile}&state={hostile}", owner).text


def test_the_language_and_the_theme_are_chosen_by_cookies(unchanged: ConsoleServer) -> None:
    assert unchanged.post(
        "/console/language", form={"language": "zh", "next": "/console/sign-in"}
    ).cookies == {"tera_language": "zh"}
    assert unchanged.post("/console/language", form={"language": "<x>"}).cookies == {"tera_language": ""}
    assert "登录" in unchanged.get("/console/sign-in", cookie="tera_language=zh").words
    assert 'data-theme="dark"' in unchanged.get("/console/sign-in", cookie="tera_theme=dark").text
    assert "data-theme" not in unchanged.get("/console/sign-in", cookie='tera_theme="><b>').text


@given(st.binary(max_size=300))
def test_any_bytes_are_a_form_or_one_error(content: bytes) -> None:
    try:
        form = parse_form(content)
    except BadInput:
        return
    assert all("\0" not in value for _, value in form)


@given(st.text(max_size=300))
def test_any_cookie_header_is_read(header: str) -> None:
    assert isinstance(parse_cookies(header), dict)


@given(st.text(max_size=60), st.text(max_size=60))
def test_an_origin_is_own_only_if_it_names_the_host(origin: str, host: str) -> None:
    if is_own_origin(origin, host, ""):
        assert host.lower() in origin.lower()


def test_passwords_are_hashed_with_argon2id() -> None:
    passwords = Argon2Passwords()
    hashed = passwords.hashed("a good password")
    assert hashed.startswith("$argon2id$")
    assert passwords.matches(hashed, "a good password")
    assert not passwords.matches(hashed, "another password")
    assert not passwords.matches("not a hash", "a good password")
    assert passwords.hashed("a good password") != hashed


def test_a_terminal_belongs_to_its_session_and_ends_with_the_server(
    console: ConsoleServer, tenants: Tenants, owner: str
) -> None:
    made = console.post(f"{LIST}/web/terminals", owner, {"columns": "80", "rows": "24"})
    id = msgspec.json.decode(made.body)["id"]
    assert console.post(f"{LIST}/web/terminals/{id}/input", owner, {"data": "bHMN"}).status == 204
    second = console.session(tenants.keys["owner"])
    assert console.post(f"{LIST}/web/terminals/{id}/input", second, {"data": "bHMN"}).status == 404
    assert console.post(f"{LIST}/web/terminals/{id}/input", owner, {"data": "not base64!"}).status == 422
    audit = console.ask("GET", "/v1/audit", tenants.keys["owner"]).json["items"]
    assert [each["details"]["name"] for each in audit if each["action"] == "instance.terminal"] == ["web"]
    terminal = console.cloud.terminals._open[id]
    assert not terminal.ended
    console.application.end_streams()
    assert terminal.ended


def sign_out(console: ConsoleServer, tenants: Tenants, session: str) -> None:
    nouns = console.cloud.services.nouns
    nouns.sessions.sign_out(nouns.tenants.authenticate(session))


def revoke_key(console: ConsoleServer, tenants: Tenants, session: str) -> None:
    nouns, key = console.cloud.services.nouns, tenants.keys["member"]
    nouns.tenants.keys.revoke(nouns.tenants.authenticate(tenants.keys["owner"]), str(id_of(key)))


def lower_role(console: ConsoleServer, tenants: Tenants, session: str) -> None:
    tenant = console.cloud.services.nouns.tenants
    tenant.members.set_role(tenant.authenticate(tenants.keys["owner"]), "member@acme", Role.VIEWER)


@pytest.mark.parametrize("withdraw", [sign_out, revoke_key, lower_role])
@pytest.mark.parametrize("reads", [True, False])
def test_a_terminal_ends_with_its_permission_however_much_it_writes(
    console: ConsoleServer,
    tenants: Tenants,
    monkeypatch: pytest.MonkeyPatch,
    withdraw: Callable[[ConsoleServer, Tenants, str], None],
    reads: bool,
) -> None:
    """Also for a browser that keeps the connection and reads nothing."""
    monkeypatch.setattr(terminal, "CHECK_SECONDS", 0.05)
    member = console.session(tenants.keys["member"])
    id = msgspec.json.decode(console.post(f"{LIST}/web/terminals", member).body)["id"]
    opened = console.cloud.terminals._open[id]
    monkeypatch.setattr(opened.engine, "read", lambda: b"and more\r\n")
    assert console.post(f"{LIST}/web/terminals/{id}/input", member, {"data": "bHMN"}).status == 204
    timer = threading.Timer(0.2, withdraw, [console, tenants, member])
    timer.start()
    sent = asyncio.run(asyncio.wait_for(output_of(console, opened, member, reads=reads), 20))
    timer.join()
    assert opened.ended, "no shell is left behind"
    assert sent > 1000 if reads else sent == 1, "it wrote all the time"
    assert console.post(f"{LIST}/web/terminals/{id}/input", member, {"data": "bHMN"}).status in (303, 403)


def test_a_terminal_ends_when_its_permission_cannot_be_checked(
    console: ConsoleServer, tenants: Tenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(call: object) -> bool:
        raise RuntimeError("no thread is free")

    monkeypatch.setattr(terminal, "_still_may", broken)
    member = console.session(tenants.keys["member"])
    id = msgspec.json.decode(console.post(f"{LIST}/web/terminals", member).body)["id"]
    opened = console.cloud.terminals._open[id]
    asyncio.run(asyncio.wait_for(output_of(console, opened, member, reads=True), 20))
    assert opened.ended


async def output_of(console: ConsoleServer, opened: OpenTerminal, session: str, *, reads: bool) -> int:
    """How much is sent until the stream or the terminal ends. Who does not read takes the first piece only."""
    tenant = console.cloud.services.nouns.tenants
    project = tenant.projects.show(tenant.authenticate(session), "default")
    services = SimpleNamespace(terminals=console.cloud.terminals, tenants=tenant)
    call: Any = SimpleNamespace(services=services, secret=session, project=project)
    sent = 0
    async with aclosing(terminal._followed(call, opened, 0)) as pieces:
        async for piece in pieces:
            sent += piece.count(b"more") if reads else 1
            while not reads and not opened.ended:
                await asyncio.sleep(0.01)
            if not reads:
                break
    return sent


@pytest.mark.parametrize(
    ("phase", "ends"),
    [("running", False), ("changing", False), ("away", False), ("stopped", True), ("gone", True)],
)
def test_a_terminal_ends_with_its_instance(
    console: ConsoleServer, owner: str, phase: str, ends: bool
) -> None:
    """Also where the engine does not say so, such as on a host that is lost."""
    id = msgspec.json.decode(console.post(f"{LIST}/web/terminals", owner).body)["id"]
    opened = console.cloud.terminals._open[id]
    with sqlite3.connect(console.cloud.at.folder / "cloud.db") as database:
        database.execute("UPDATE instance SET phase = ? WHERE id = ?", (phase, opened.instance_id))
    database.close()
    console.cloud.terminals.end_stopped()
    assert opened.ended == ends


def test_a_terminal_has_few_readers(console: ConsoleServer, owner: str) -> None:
    id = msgspec.json.decode(console.post(f"{LIST}/web/terminals", owner).body)["id"]
    opened = console.cloud.terminals._open[id]
    for _ in range(READERS_MAX):
        console.cloud.terminals.enter(opened)
    refused = console.get(f"{LIST}/web/terminals/{id}/output", owner)
    assert refused.status == 429
    assert "4 readers" in refused.words
    console.cloud.terminals.leave(opened)
    opened.end()
    assert console.get(f"{LIST}/web/terminals/{id}/output", owner).status == 200
