"""ID tokens: only a token that the provider signed for this client and this sign-in is accepted."""

import hmac
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.identity_provider import SigningKey, b64, joined, usual_key

from teraflock.app.oidc.fetching import is_safe_address
from teraflock.app.oidc.tokens import UnknownKey, check_claims, claims_of
from teraflock.base.errors import NotAuthenticated
from teraflock.tenant.identity.rules import challenge_of, email_from

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
CLAIMS = {
    "iss": "https://login.example", "sub": "7", "aud": "us", "exp": SECONDS + 60, "iat": SECONDS, "nonce": "n",
}  # fmt: skip
KEY = usual_key()
OTHER = SigningKey("two")
KEYS = [KEY.public()]


def check(claims: dict[str, Any]) -> str:
    return check_claims(claims, issuer="https://login.example", client_id="us", nonce="n", now=NOW)


def test_a_signed_token_for_us_names_its_subject() -> None:
    assert check(dict(claims_of(KEY.sign(CLAIMS), KEYS))) == "7"
    assert check({**CLAIMS, "aud": ["us", "others"], "azp": "us"}) == "7"


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://evil.example"},
        {"iss": "https://login.example/"},
        {"aud": "others"},
        {"aud": ["others"]},
        {"aud": ["us", "others"]},
        {"aud": None},
        {"aud": {"us": 1}},
        {"azp": "others"},
        {"nonce": "another"},
        {"nonce": None},
        {"nonce": ""},
        {"exp": SECONDS - 61},
        {"exp": "never"},
        {"exp": True},
        {"exp": None},
        {"iat": SECONDS + 61},
        {"nbf": SECONDS + 61},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 256},
        {"sub": "a\0b"},
    ],
)
def test_a_wrong_claim_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(NotAuthenticated):
        check({**CLAIMS, **changed})


def test_a_sign_in_without_a_nonce_accepts_no_token() -> None:
    with pytest.raises(NotAuthenticated):
        check_claims(
            {**CLAIMS, "nonce": ""}, issuer="https://login.example", client_id="us", nonce="", now=NOW
        )


def test_unsigned_tokens_and_hmacs_with_the_public_key_are_refused() -> None:
    for algorithm in ("none", "None", "NONE", "", "HS256", "HS512", None, 7):
        header = {"alg": algorithm, "kid": KEY.kid}
        text = joined(header, CLAIMS)
        for secret in (KEY.pem(), KEY.pem().strip(), KEYS[0]["n"].encode()):
            signature = b64(hmac.digest(secret, text.encode(), "sha256"))
            for token in (f"{text}.{signature}", f"{text}."):
                with pytest.raises(NotAuthenticated, match="algorithm"):
                    claims_of(token, KEYS)


def test_a_token_of_another_key_is_refused() -> None:
    with pytest.raises(NotAuthenticated, match="signature"):
        claims_of(OTHER.as_kid(KEY.kid)(CLAIMS), KEYS)
    with pytest.raises(UnknownKey):
        claims_of(OTHER.sign(CLAIMS), KEYS)
    with pytest.raises(UnknownKey):
        claims_of(KEY.sign(CLAIMS), [{**KEYS[0], "use": "enc"}])
    short = SigningKey(kid="short", bits=1024)
    with pytest.raises(NotAuthenticated, match="signature"):
        claims_of(short.sign(CLAIMS), [short.public()])


def test_a_key_inside_the_token_is_never_used() -> None:
    text = joined({"alg": "RS256", "kid": "theirs", "jwk": OTHER.public(), "jku": "http://evil/"}, CLAIMS)
    with pytest.raises(UnknownKey):
        claims_of(f"{text}.{OTHER.sign(CLAIMS).rpartition('.')[2]}", KEYS)
    critical = joined({"alg": "RS256", "kid": KEY.kid, "crit": ["exp"]}, CLAIMS)
    with pytest.raises(NotAuthenticated, match="extension"):
        claims_of(f"{critical}.xxxx", KEYS)


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_is_noticed(place: int, byte: int) -> None:
    token = KEY.sign(CLAIMS)
    at = place % len(token)
    changed = token[:at] + chr(byte) + token[at + 1 :]
    try:
        claims = claims_of(changed, KEYS)
    except (NotAuthenticated, UnknownKey):
        return
    assert claims == CLAIMS, "only unused bits of the last character may differ"


def test_elliptic_curves_are_verified() -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    numbers = private.public_key().public_numbers()
    key = {
        "kty": "EC",
        "crv": "P-256",
        "x": b64(numbers.x.to_bytes(32, "big")),
        "y": b64(numbers.y.to_bytes(32, "big")),
    }
    text = joined({"alg": "ES256"}, CLAIMS)
    first, second = decode_dss_signature(private.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    signature = first.to_bytes(32, "big") + second.to_bytes(32, "big")
    assert claims_of(f"{text}.{b64(signature)}", [key]) == CLAIMS
    for wrong in (signature[::-1], bytes(64), b"", signature + b"x"):
        with pytest.raises(NotAuthenticated):
            claims_of(f"{text}.{b64(wrong)}", [key])
    edwards = ed25519.Ed25519PrivateKey.generate()
    text = joined({"alg": "EdDSA"}, CLAIMS)
    key = {"kty": "OKP", "crv": "Ed25519", "x": b64(edwards.public_key().public_bytes_raw())}
    assert claims_of(f"{text}.{b64(edwards.sign(text.encode()))}", [key]) == CLAIMS


@given(st.text(max_size=200))
def test_any_text_is_refused_with_one_error(text: str) -> None:
    with pytest.raises(NotAuthenticated):
        claims_of(text, KEYS)


def test_only_verified_plain_addresses_count() -> None:
    assert email_from(" Ann@Lab.Example ", True) == "ann@lab.example"
    assert email_from("ann@lab.example", "true") == "ann@lab.example"
    for verified in (False, None, "false", 1, "yes"):
        assert email_from("ann@lab.example", verified) == ""
    for text in (
        None,
        7,
        "ann",
        "ann@",
        "a nn@lab.example",
        "ann@lab.example\n@x.y",
        "änn@lab.example",
        "a@b.c" * 40,
    ):
        assert email_from(text, True) == ""


def test_the_challenge_is_that_of_the_specification() -> None:
    assert (
        challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )


def test_only_https_leaves_this_machine() -> None:
    assert is_safe_address("https://login.example/realms/a")
    assert is_safe_address("http://127.0.0.1:99/x")
    for text in (
        "http://login.example",
        "https://",
        "ftp://x",
        "https://a b",
        "https://u:p@x",
        "https://x:y",
        "http://[::1",
    ):
        assert not is_safe_address(text)


def test_tokens_expire_even_with_a_skewed_clock() -> None:
    later = NOW + timedelta(minutes=2, seconds=1)
    with pytest.raises(NotAuthenticated, match="expired"):
        check_claims(CLAIMS, issuer="https://login.example", client_id="us", nonce="n", now=later)
