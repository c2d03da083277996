"""An OpenID provider on this machine that follows the specification and signs real tokens.

It checks what a strict provider checks: the client, the exact redirect address, PKCE, and that a code is used once.
Tests change what it says with `claims` (values over those of the token) and `sign` (another way to sign).
"""

import base64
import hashlib
import html
import time
from collections.abc import Callable
from functools import cache, cached_property
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, quote, unquote_plus, urlencode, urlsplit

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from tests.fakes.server import LocalServer

CLIENT = "teraflock"
SECRET = "a secret: of the client"
Sign = Callable[[dict[str, Any]], str]


def b64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def joined(header: dict[str, Any], claims: dict[str, Any]) -> str:
    return f"{b64(msgspec.json.encode(header))}.{b64(msgspec.json.encode(claims))}"


class SigningKey:
    """An RSA key with its public form for the provider's list of keys."""

    def __init__(self, kid: str = "one", bits: int = 2048) -> None:
        self.kid = kid
        self.bits = bits

    @cached_property
    def private(self) -> rsa.RSAPrivateKey:
        """Generated when it is used: every worker of a test run creates the key objects of all modules."""
        return rsa.generate_private_key(65537, self.bits)

    def public(self) -> dict[str, str]:
        numbers = self.private.public_key().public_numbers()
        modulus = numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8, "big")
        return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid, "n": b64(modulus), "e": "AQAB"}

    def pem(self) -> bytes:
        return self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def sign(self, claims: dict[str, Any]) -> str:
        return self.as_kid(self.kid)(claims)

    def as_kid(self, kid: str) -> Sign:
        """Sign in the name of another key."""
        return lambda claims: self._signed(joined({"alg": "RS256", "typ": "JWT", "kid": kid}, claims))

    def _signed(self, text: str) -> str:
        return f"{text}.{b64(self.private.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@cache
def usual_key() -> SigningKey:
    """One for all tests, because making one takes a while."""
    return SigningKey()


class FakeIdentityProvider(LocalServer):
    def __init__(self, return_to: str = "") -> None:
        self.key = usual_key()
        self.keys = [self.key.public()]
        self.return_to = return_to
        self.claims: dict[str, Any] = {}
        self.sign: Sign = self.key.sign
        self.is_down = False
        self.calls: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        super().__init__(_handler(self))
        self.issuer = self.url

    def answer(
        self, method: str, path: str, fields: dict[str, str], authorization: str
    ) -> tuple[int, str, bytes]:
        """Status, type or redirect address, and body."""
        self.calls.append(f"{method} {path}")
        if self.is_down:
            return 500, "text/plain", b"broken"
        if path == "/.well-known/openid-configuration":
            return _json(self.configuration())
        if path == "/keys":
            return _json({"keys": self.keys})
        if path == "/authorize":
            return self._authorize(method, fields)
        if path == "/token" and method == "POST":
            return self._token(fields, authorization)
        return 404, "text/plain", b"no such page"

    def configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer, "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token", "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"], "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
        }  # fmt: skip

    def _authorize(self, method: str, fields: dict[str, str]) -> tuple[int, str, bytes]:
        expected = {
            "client_id": CLIENT, "redirect_uri": self.return_to, "response_type": "code",
            "code_challenge_method": "S256",
        }  # fmt: skip
        wrong = [name for name, value in expected.items() if fields.get(name) != value]
        if wrong or "openid" not in fields.get("scope", "").split() or not fields.get("code_challenge"):
            return 400, "text/plain", f"wrong: {wrong}".encode()
        if method == "GET":
            hidden = "".join(
                f'<input type="hidden" name="{name}" value="{html.escape(value)}">'
                for name, value in fields.items()
            )
            form = f'<form method="post">{hidden}<input name="email"><button>Continue</button></form>'
            return 200, "text/html", f"<!doctype html><title>Provider</title>{form}".encode()
        code = hashlib.sha256(repr(sorted(fields.items())).encode()).hexdigest()
        self._codes[code] = fields
        sent = urlencode({"code": code, "state": fields.get("state", ""), "iss": self.issuer})
        return 303, f"{self.return_to}?{sent}", b""

    def _token(self, fields: dict[str, str], authorization: str) -> tuple[int, str, bytes]:
        asked = self._codes.pop(fields.get("code", ""), None)
        challenge = b64(hashlib.sha256(fields.get("code_verifier", "").encode()).digest())
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if (unquote_plus(name), unquote_plus(secret)) != (CLIENT, SECRET):
            return 401, "application/json", b'{"error": "invalid_client"}'
        if (
            asked is None
            or challenge != asked["code_challenge"]
            or fields.get("redirect_uri") != self.return_to
        ):
            return 400, "application/json", b'{"error": "invalid_grant"}'
        now = int(time.time())
        claims = {
            "iss": self.issuer, "sub": f"id-of-{quote(asked['email'])}", "aud": CLIENT, "exp": now + 300, "iat": now,
            "nonce": asked.get("nonce", ""), "email": asked["email"], "email_verified": True, **self.claims,
        }  # fmt: skip
        return _json({"access_token": "x", "token_type": "Bearer", "id_token": self.sign(claims)})


def _json(value: Any) -> tuple[int, str, bytes]:
    return 200, "application/json", msgspec.json.encode(value)


def _handler(fake: FakeIdentityProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            fields = dict(parse_qsl(parts.query) + parse_qsl(self.rfile.read(length).decode()))
            status, kind, body = fake.answer(
                self.command, parts.path, fields, self.headers.get("Authorization", "")
            )
            self.send_response(status)
            self.send_header("Location" if status == 303 else "Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer  # noqa: N815

        def log_message(self, format: str, *words: Any) -> None:
            return

    return Handler
