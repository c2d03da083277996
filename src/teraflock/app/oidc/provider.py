"""One identity provider: its configuration (OpenID Connect Discovery 1.0), its keys, and the exchange of codes.

The configuration and the keys are fetched when they are needed and kept for a while. An unknown key makes the server
fetch the keys again, at most once a minute, so that a stranger's tokens cannot make it ask all the time. After a
failure nobody asks for a few seconds: otherwise a provider that hangs would block the threads of the console.
"""

import base64
import threading
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec

from teraflock.app.oidc.fetching import Fetch, ProviderFailed, fetch, is_safe_address
from teraflock.app.oidc.tokens import Claims, Key, UnknownKey, check_claims, claims_of, wrong_token
from teraflock.base.clock import Clock
from teraflock.tenant.identity.model import Attempt, ConfirmedIdentity
from teraflock.tenant.identity.rules import challenge_of, email_from

CONFIGURATION: Final = "/.well-known/openid-configuration"
KEPT_FOR: Final = timedelta(hours=1)
FAILED_FOR: Final = timedelta(seconds=5)
KEYS_PAUSE: Final = timedelta(minutes=1)
KEYS_MAX: Final = 100
SCOPE: Final = "openid email"


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True):
    issuer: str
    client_id: str
    client_secret: str
    """Empty: a public client, which only PKCE protects."""
    return_to: str
    """The address of this server to which the provider sends browsers back."""
    name: str


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the provider's configuration that we use."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _Keys(msgspec.Struct):
    keys: list[dict[str, Any]]


class _Tokens(msgspec.Struct):
    id_token: str


class OidcProvider:
    def __init__(self, settings: ProviderSettings, clock: Clock, fetch: Fetch = fetch) -> None:
        self.name = settings.name
        self._settings = settings
        self._clock = clock
        self._fetch = fetch
        self._lock = threading.Lock()
        self._configured: tuple[datetime, Configuration] | None = None
        self._keys: tuple[datetime, list[Key]] | None = None
        self._failed: tuple[datetime, ProviderFailed] | None = None

    def address(self, attempt: Attempt) -> str:
        endpoint = self._configuration().authorization_endpoint
        query = urlencode(
            {
                "response_type": "code", "client_id": self._settings.client_id, "scope": SCOPE,
                "redirect_uri": self._settings.return_to, "state": attempt.state, "nonce": attempt.nonce,
                "code_challenge": challenge_of(attempt.verifier), "code_challenge_method": "S256",
            }
        )  # fmt: skip
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{query}"

    def check_issuer(self, issuer: str) -> None:
        is_sent = bool(issuer) or self._configuration().authorization_response_iss_parameter_supported
        if is_sent and issuer != self._settings.issuer:
            raise wrong_token("the answer is of another issuer")

    def identity(self, code: str, attempt: Attempt) -> ConfirmedIdentity:
        claims = self._claims(self._id_token(code, attempt.verifier))
        settings = self._settings
        subject = check_claims(
            claims,
            issuer=settings.issuer,
            client_id=settings.client_id,
            nonce=attempt.nonce,
            now=self._clock.now(),
        )
        email = email_from(claims.get("email"), claims.get("email_verified"))
        return ConfirmedIdentity(issuer=settings.issuer, subject=subject, email=email)

    def _id_token(self, code: str, verifier: str) -> str:
        settings, configuration = self._settings, self._configuration()
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": settings.return_to,
            "client_id": settings.client_id, "code_verifier": verifier,
        }  # fmt: skip
        headers = {}
        if settings.client_secret:
            if "client_secret_basic" in configuration.token_endpoint_auth_methods_supported:
                headers["Authorization"] = _basic(settings.client_id, settings.client_secret)
            else:
                form["client_secret"] = settings.client_secret
        reply = self._fetch(configuration.token_endpoint, urlencode(form).encode(), headers)
        try:
            return msgspec.json.decode(reply, type=_Tokens).id_token
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ProviderFailed("The identity provider returned no ID token") from None

    def _claims(self, token: str) -> Claims:
        try:
            return claims_of(token, self._known_keys())
        except UnknownKey:
            pass
        try:
            return claims_of(token, self._known_keys(after=KEYS_PAUSE))
        except UnknownKey:
            raise wrong_token("the provider has no such key") from None

    def _configuration(self) -> Configuration:
        with self._lock:
            now = self._clock.now()
            if self._configured is None or now - self._configured[0] > KEPT_FOR:
                self._configured = now, self._fetched_configuration()
            return self._configured[1]

    def _fetched_configuration(self) -> Configuration:
        issuer = self._settings.issuer
        content = self._read(issuer.rstrip("/") + CONFIGURATION)
        try:
            found = msgspec.json.decode(content, type=Configuration)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ProviderFailed("The configuration of the identity provider cannot be read") from None
        if found.issuer != issuer:
            raise ProviderFailed(f"The identity provider calls itself `{found.issuer[:200]}`, not `{issuer}`")
        endpoints = (found.authorization_endpoint, found.token_endpoint, found.jwks_uri)
        if not all(is_safe_address(each) for each in endpoints):
            raise ProviderFailed("The identity provider names an address without HTTPS")
        return found

    def _known_keys(self, after: timedelta = KEPT_FOR) -> list[Key]:
        """The provider's keys, fetched again if they are older than `after`."""
        address = self._configuration().jwks_uri
        with self._lock:
            now = self._clock.now()
            if self._keys is None or now - self._keys[0] > after:
                self._keys = now, self._fetched_keys(address)
            return self._keys[1]

    def _fetched_keys(self, address: str) -> list[Key]:
        try:
            found = msgspec.json.decode(self._read(address), type=_Keys).keys
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ProviderFailed("The keys of the identity provider cannot be read") from None
        return list[Key](found[:KEYS_MAX])

    def _read(self, address: str) -> bytes:
        """Fetch a document, with the lock. Requests that waited for one that failed fail at once."""
        if self._failed is not None and self._clock.now() - self._failed[0] < FAILED_FOR:
            raise self._failed[1]
        try:
            return self._fetch(address, None, {})
        except ProviderFailed as error:
            self._failed = self._clock.now(), error
            raise


def _basic(name: str, secret: str) -> str:
    """RFC 6749, section 2.3.1: both are form-encoded first."""
    pair = f"{quote_plus(name)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"
