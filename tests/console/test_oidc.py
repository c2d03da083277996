"""Sign-in by an identity provider: who gets in, as whom, and what an attacker tries."""

import hmac
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.asking import Tenants
from tests.console.oidc import RETURN, OidcBrowser, with_provider
from tests.console.visiting import ConsoleServer
from tests.fakes.identity_provider import FakeIdentityProvider, SigningKey, b64, joined

from teraflock.wire.member import MemberRequest

ANN = "ann@lab.example"
OTHER = SigningKey("other")
Door = tuple[ConsoleServer, FakeIdentityProvider]


@pytest.fixture
def door(furnished: tuple[Path, Tenants], tmp_path: Path) -> Iterator[Door]:
    with with_provider(
        furnished[0], tmp_path, oidc_organisation="acme", oidc_domains="lab.example", oidc_role="viewer"
    ) as made:
        yield made


@pytest.fixture
def closed(furnished: tuple[Path, Tenants], tmp_path: Path) -> Iterator[Door]:
    """Nobody joins without an invitation."""
    with with_provider(furnished[0], tmp_path) as made:
        yield made


def invite(console: ConsoleServer, key: str, name: str, role: Any = "member") -> None:
    made = console.ask("POST", "/v1/members", key, body=MemberRequest(name=name, role=role))
    assert made.status == 201, made


def whoami(console: ConsoleServer, session: str) -> dict[str, Any]:
    answer: dict[str, Any] = console.ask("GET", "/v1/whoami", session).json
    return answer


def test_an_invited_member_agrees_once_and_then_gets_in_directly(closed: Door, tenants: Tenants) -> None:
    console, _ = closed
    invite(console, tenants.keys["owner"], "Ann@Lab.Example")
    browser = OidcBrowser(console)
    page = browser.sign_in(ANN, "/console/sign-in/oidc?next=/console/team")
    assert (page.status, browser.session) == (200, ""), "the organisation is shown before anyone gets in"
    member = re.search(r'name="member" value="(mem_\w+)"', page.text)
    assert "Continue in acme as Ann@Lab.Example" in page.words
    assert member
    assert browser.post("/console/sign-in/oidc", {"member": member[1]}).header("location") == "/console/team"
    assert whoami(console, browser.session)["member_name"] == "Ann@Lab.Example"
    again = OidcBrowser(console)
    assert again.sign_in(ANN).header("location") == "/console/"
    audit = console.ask("GET", "/v1/audit", tenants.keys["owner"]).json["items"]
    assert [each["details"]["how"] for each in audit if each["action"] == "console.sign-in"][:2] == [
        "oidc"
    ] * 2


def test_sign_ins_that_succeed_do_not_count_against_their_address(
    furnished: tuple[Path, Tenants], tmp_path: Path
) -> None:
    domain = {"oidc_organisation": "acme", "oidc_domains": "lab.example", "oidc_role": "viewer"}
    with with_provider(furnished[0], tmp_path, rate_per_second=200, **domain) as (console, _):
        for _ in range(15):
            OidcBrowser(console).sign_in(ANN)  # shows what she would join
        first = OidcBrowser(console)
        first.sign_in(ANN)
        first.post("/console/sign-in/oidc", {"member": ""})
        for _ in range(15):
            again = OidcBrowser(console)
            again.sign_in(ANN)
            assert again.session
        answers = [console.get(f"{RETURN}?state=x&code=x").status for _ in range(40)]
        assert 429 in answers


def test_a_new_person_of_a_known_domain_joins_with_the_role_of_the_settings(door: Door) -> None:
    console, _ = door
    browser = OidcBrowser(console)
    assert "Join acme" in browser.sign_in(ANN).words
    browser.post("/console/sign-in/oidc", {"member": ""})
    who = whoami(console, browser.session)
    assert (who["member_name"], who["organisation_name"], who["roles"]) == (ANN, "acme", {"": "viewer"})
    for email in ("ann@evil.example", "ann@sub.lab.example", "lab.example@evil.example"):
        stranger = OidcBrowser(console)
        refused = stranger.sign_in(email)
        assert (refused.status, stranger.session) == (401, "")
        assert "No member here has the e-mail address" in refused.words
        assert stranger.post("/console/sign-in/oidc", {"member": ""}).status == 401


def test_nobody_joins_without_an_invitation_unless_the_operator_allows_it(closed: Door) -> None:
    console, _ = closed
    browser = OidcBrowser(console)
    assert browser.sign_in(ANN).status == 401
    assert browser.session == ""


def test_an_unverified_address_finds_nobody(door: Door, tenants: Tenants) -> None:
    console, provider = door
    invite(console, tenants.keys["owner"], ANN)
    for verified in (False, None, "no"):
        provider.claims = {"email_verified": verified}
        browser = OidcBrowser(console)
        refused = browser.sign_in(ANN)
        assert (refused.status, browser.session) == (401, "")
        assert "has not verified your e-mail address" in refused.words


def test_a_removed_member_does_not_come_back_alone(door: Door, tenants: Tenants) -> None:
    console, _ = door
    browser = OidcBrowser(console)
    browser.sign_in(ANN)
    browser.post("/console/sign-in/oidc", {"member": ""})
    assert console.ask("DELETE", f"/v1/members/{ANN}", tenants.keys["owner"]).status in (200, 204)
    assert console.get("/console/account", browser.session).status == 303
    again = OidcBrowser(console)
    assert again.sign_in(ANN).status == 401
    assert again.post("/console/sign-in/oidc", {"member": ""}).status == 401


def test_an_organisation_of_a_stranger_cannot_capture_a_sign_in(closed: Door, tenants: Tenants) -> None:
    console, _ = closed
    invite(console, tenants.keys["owner"], ANN)
    invite(console, tenants.keys["other"], ANN)
    browser = OidcBrowser(console)
    page = browser.sign_in(ANN)
    assert browser.session == ""
    assert "Continue in acme" in page.words
    assert "Continue in other" in page.words
    stranger = console.ask("GET", "/v1/members", tenants.keys["other"]).json["items"][0]["id"]
    assert browser.post("/console/sign-in/oidc", {"member": stranger}).status == 401, "another member's id"


def test_an_address_alone_never_opens_an_operators_account(closed: Door, tenants: Tenants) -> None:
    console, provider = closed
    with console.cloud.database.read() as tx:
        name = tx.one("SELECT name FROM member WHERE is_operator = 1")
    assert name
    console.cloud.database.write(
        lambda tx: tx.run("UPDATE member SET name = :name WHERE is_operator = 1", name=ANN)
    )
    assert OidcBrowser(console).sign_in(ANN).status == 401
    inside = OidcBrowser(console, console.session(tenants.keys["operator"]))
    inside.cookies["tera_session"] = console.post(
        console.ask("POST", "/v1/console/links", tenants.keys["operator"], body={}).json["path"]
    ).cookies["tera_session"]
    assert inside.sign_in(ANN, "/console/account/oidc").header("location") == "/console/account"
    page = inside.get("/console/account")
    assert f"as {ANN} will get into this account" in page.words
    csrf = re.search(r'name="csrf" value="(\w+)"', page.text)
    assert csrf
    assert inside.post("/console/account/oidc", {}).status == 403, "a page of another site cannot connect"
    assert OidcBrowser(console).sign_in(ANN).status == 401, "nothing is connected yet"
    assert inside.post("/console/account/oidc", {"csrf": csrf[1]}).status == 303
    outside = OidcBrowser(console)
    outside.sign_in(ANN)
    assert whoami(console, outside.session)["is_operator"]
    assert provider.calls.count("GET /keys") == 1, "keys are kept"
    inside.post("/console/account/oidc/remove", {"csrf": csrf[1]})
    assert OidcBrowser(console).sign_in(ANN).status == 401


def hs256(provider: FakeIdentityProvider, claims: dict[str, Any]) -> str:
    text = joined({"alg": "HS256", "kid": provider.key.kid}, claims)
    return f"{text}.{b64(hmac.digest(provider.key.pem(), text.encode(), 'sha256'))}"


WRONG_CLAIMS: tuple[dict[str, Any], ...] = (
    {"aud": "another-client"},
    {"aud": ["teraflock", "another-client"]},
    {"azp": "another-client"},
    {"iss": "https://evil.example"},
    {"nonce": "another"},
    {"nonce": None},
    {"exp": int(time.time()) - 3600},
    {"iat": int(time.time()) + 3600},
    {"sub": ""},
)


def test_a_token_with_a_wrong_claim_opens_nothing(door: Door) -> None:
    console, provider = door
    for claims in WRONG_CLAIMS:
        provider.claims = claims
        browser = OidcBrowser(console)
        refused = browser.sign_in(ANN)
        assert (refused.status, browser.session) == (401, ""), claims
        assert "The token of the identity provider is not valid" in refused.words


def test_a_token_with_a_forged_signature_opens_nothing(door: Door) -> None:
    console, provider = door
    forgeries = (
        lambda claims: joined({"alg": "none"}, claims) + ".",
        lambda claims: hs256(provider, claims),
        OTHER.as_kid(provider.key.kid),
        OTHER.as_kid("unknown"),
        lambda claims: "nonsense",
    )
    for forged in forgeries:
        provider.sign = forged
        browser = OidcBrowser(console)
        assert browser.sign_in(ANN).status == 401
        assert browser.session == ""


def test_an_attempt_works_once_and_only_in_its_browser(door: Door) -> None:
    console, _ = door
    browser = OidcBrowser(console)
    back = browser.at_provider(ANN)
    thief = OidcBrowser(console)
    assert thief.get(back).status == 401, "another browser has no cookie"
    thief.get("/console/sign-in/oidc")
    assert thief.get(back).status == 401, "its cookie is of another attempt"
    kept = dict(browser.cookies)
    assert browser.get(back).status == 200
    confirmed = dict(browser.cookies)
    browser.cookies = kept
    assert browser.get(back).status == 401, "a replayed state"
    assert browser.get(back.replace("state=", "state=0")).status == 401
    assert browser.get(f"{RETURN}?code=x").status == 401
    assert browser.get(f"{RETURN}?state=%E2%82%AC&code=x").status == 401
    for _ in range(2):
        browser.cookies = dict(confirmed)
        last = browser.post("/console/sign-in/oidc", {"member": ""})
    assert (last.status, browser.session) == (401, ""), "a replayed choice"
    browser.cookies = {"tera_oidc": kept["tera_oidc"]}
    assert browser.post("/console/sign-in/oidc", {"member": ""}).status == 401, (
        "an attempt is not an identity"
    )


def test_the_answer_of_another_issuer_is_refused(door: Door) -> None:
    console, _ = door
    browser = OidcBrowser(console)
    back = browser.at_provider(ANN)
    kept = dict(browser.cookies)
    assert browser.get(back.partition("&iss=")[0] + "&iss=https://evil.example").status == 401
    browser.cookies = kept
    assert browser.get(back.partition("&iss=")[0]).status == 401, "the provider says that it always sends it"


def test_a_sign_in_leads_nowhere_else(door: Door, tenants: Tenants) -> None:
    console, _ = door
    for next in ("https://evil.example/", "//evil.example", "/console/\\evil", "/v1/keys"):
        browser = OidcBrowser(console)
        page = browser.sign_in(ANN, f"/console/sign-in/oidc?next={next}")
        if page.status == 200:  # the first time
            page = browser.post("/console/sign-in/oidc", {"member": ""})
        assert page.header("location") == "/console/", next


def test_a_provider_that_is_down_is_an_error_with_a_way_on(door: Door) -> None:
    console, provider = door
    provider.is_down = True
    page = console.get("/console/sign-in/oidc")
    assert page.status == 503
    assert "The identity provider refused the request" in page.words
    assert "Password" in page.words


def test_without_a_provider_there_is_no_such_page(unchanged: ConsoleServer) -> None:
    assert unchanged.get("/console/sign-in/oidc").status == 404
    assert unchanged.get(f"{RETURN}?code=x&state=y").status == 404
    assert "oidc" not in unchanged.get("/console/sign-in").text
