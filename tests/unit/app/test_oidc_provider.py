"""The client of an identity provider: settings, its configuration, its keys, and how long they are kept."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.identity_provider import CLIENT, usual_key

from teraflock.app.oidc.configured import joining_of, provider_of
from teraflock.app.oidc.fetching import ProviderFailed
from teraflock.app.oidc.provider import OidcProvider, ProviderSettings
from teraflock.app.settings import Settings
from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, NotAuthenticated
from teraflock.tenant.identity.model import Attempt

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
ISSUER = "https://login.example"
SETTINGS = ProviderSettings(
    issuer=ISSUER, client_id=CLIENT, client_secret="s", return_to="https://here.example/back", name="Lab"
)
ATTEMPT = Attempt(state="s", nonce="n", verifier="v", next="", expires_at=NOW)
CONFIGURATION = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/go?realm=a",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/keys",
}


class Answers:
    def __init__(self, clock: FixedClock) -> None:
        self.clock = clock
        self.asked: list[str] = []
        self.is_down = False
        self.kid = usual_key().kid
        self.configuration: dict[str, Any] = dict(CONFIGURATION)

    def __call__(self, address: str, form: bytes | None, headers: Any) -> bytes:
        path = address.removeprefix(ISSUER)
        self.asked.append(path)
        if self.is_down:
            raise ProviderFailed("No answer")
        if path == "/token":
            now = int(self.clock.now().timestamp())
            claims = {"iss": ISSUER, "sub": "7", "aud": CLIENT, "exp": now + 60, "iat": now, "nonce": "n"}
            return msgspec.json.encode({"id_token": usual_key().as_kid(self.kid)(claims)})
        if path == "/keys":
            return msgspec.json.encode({"keys": [{**usual_key().public(), "kid": self.kid}]})
        return msgspec.json.encode(self.configuration)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def answers(clock: FixedClock) -> Answers:
    return Answers(clock)


@pytest.fixture
def provider(clock: FixedClock, answers: Answers) -> OidcProvider:
    return OidcProvider(SETTINGS, clock, answers)


def test_the_address_has_what_the_provider_needs(provider: OidcProvider) -> None:
    address = provider.address(ATTEMPT)
    assert address.startswith(
        f"{ISSUER}/go?realm=a&response_type=code&client_id={CLIENT}&scope=openid+email&"
    )
    assert "redirect_uri=https%3A%2F%2Fhere.example%2Fback" in address
    assert "code_challenge_method=S256" in address
    assert "code_verifier" not in address


def test_a_new_key_is_fetched_at_most_once_a_minute(
    provider: OidcProvider, answers: Answers, clock: FixedClock
) -> None:
    provider.identity("code", ATTEMPT)
    provider.identity("code", ATTEMPT)
    assert (answers.asked.count("/keys"), answers.asked.count("/.well-known/openid-configuration")) == (1, 1)
    answers.kid = "new"
    with pytest.raises(NotAuthenticated, match="no such key"):
        provider.identity("code", ATTEMPT)
    clock.move(timedelta(seconds=61))
    assert provider.identity("code", ATTEMPT).subject == "7"
    assert answers.asked.count("/keys") == 2
    clock.move(timedelta(hours=2))
    provider.identity("code", ATTEMPT)
    assert answers.asked.count("/.well-known/openid-configuration") == 2


def test_a_provider_that_failed_is_left_alone_for_a_moment(
    provider: OidcProvider, answers: Answers, clock: FixedClock
) -> None:
    answers.is_down = True
    for _ in range(3):
        with pytest.raises(ProviderFailed):
            provider.address(ATTEMPT)
    assert len(answers.asked) == 1
    answers.is_down = False
    clock.move(timedelta(seconds=6))
    assert provider.address(ATTEMPT)


@pytest.mark.parametrize(
    "changed",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://login.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"issuer": None},
    ],
)
def test_a_configuration_that_cannot_be_trusted_is_refused(
    provider: OidcProvider, answers: Answers, changed: dict[str, Any]
) -> None:
    answers.configuration |= changed
    with pytest.raises(ProviderFailed):
        provider.address(ATTEMPT)


GOOD = Settings(
    engine="simulated", oidc_issuer=ISSUER, oidc_client_id="us", console_url="https://cloud.example.com/"
)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"oidc_issuer": "http://login.example"}, "oidc_issuer"),
        ({"oidc_issuer": "https://login.example?x=1"}, "oidc_issuer"),
        ({"console_url": ""}, "console_url"),
        ({"console_url": "https://cloud.example.com/x"}, "path"),
        ({"oidc_client_id": ""}, "oidc_client_id"),
        ({"oidc_client_secret_file": "/nothing/here"}, "oidc_client_secret_file"),
        ({"oidc_organisation": "acme"}, "oidc_domains"),
        ({"oidc_organisation": "No Name", "oidc_domains": "x.y"}, "not a valid name"),
    ],
)
def test_settings_that_cannot_work_are_refused(changed: dict[str, Any], words: str) -> None:
    settings = msgspec.structs.replace(GOOD, **changed)
    with pytest.raises(BadInput, match=words) as refused:
        _ = provider_of(settings, FixedClock(NOW)), joining_of(settings)
    assert refused.value.hint


def test_good_settings_make_a_provider(tmp_path: Path) -> None:
    assert provider_of(Settings(engine="simulated"), FixedClock(NOW)) is None
    (tmp_path / "secret").write_text("of the client\n")
    settings = msgspec.structs.replace(GOOD, oidc_client_secret_file=str(tmp_path / "secret"))
    made = provider_of(settings, FixedClock(NOW))
    assert made is not None
    assert made.name == "login.example"
    assert joining_of(msgspec.structs.replace(GOOD, oidc_domains="A.example, b.example")).domains == {
        "a.example",
        "b.example",
    }
