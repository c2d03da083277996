"""Verifies ID tokens (OpenID Connect Core 1.0, section 3.1.3.7): signature first, then every claim.

Only signatures with public keys are accepted. So neither `none` nor an HMAC keyed with the public key ever verifies,
whatever the token says about itself.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from teraflock.base.errors import NotAuthenticated

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

SKEW_SECONDS: Final = 60
"""How much the clocks of provider and server may differ."""
TOKEN_CHARACTERS_MAX: Final = 32_000
RSA_BITS_MIN: Final = 2048
SUBJECT_CHARACTERS_MAX: Final = 255  # the specification allows no more
ALGORITHMS: Final[Mapping[str, str]] = {
    "RS256": "RSA", "RS384": "RSA", "RS512": "RSA", "PS256": "RSA", "PS384": "RSA", "PS512": "RSA",
    "ES256": "EC", "ES384": "EC", "EdDSA": "OKP",
}  # fmt: skip
"""The accepted algorithms, with the type of their keys."""
_CURVES: Final = {"ES256": ("P-256", 32), "ES384": ("P-384", 48)}

Key = Mapping[str, Any]
"""One key of the provider, as JSON (RFC 7517)."""
Claims = Mapping[str, Any]


class UnknownKey(Exception):
    """No key of the provider fits the token. The provider may have a new one."""


def claims_of(token: str, keys: Sequence[Key]) -> Claims:
    """The claims of a token whose signature is right. Raises `UnknownKey` or `NotAuthenticated`."""
    parts = token.split(".")
    if len(token) > TOKEN_CHARACTERS_MAX or len(parts) != 3 or not token.isascii():
        raise wrong_token("it is not a signed token")
    header = _object(parts[0])
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise wrong_token("its signature has an algorithm that is not accepted")
    if "crit" in header:
        raise wrong_token("it needs an extension that is not supported")
    signature, signed = _bytes(parts[2]), f"{parts[0]}.{parts[1]}".encode()
    fitting = [key for key in keys if _fits(key, algorithm, header.get("kid"))]
    if not fitting:
        raise UnknownKey
    if not any(_verifies(key, algorithm, signature, signed) for key in fitting):
        raise wrong_token("its signature is wrong")
    return _object(parts[1])


def check_claims(claims: Claims, *, issuer: str, client_id: str, nonce: str, now: datetime) -> str:
    """Raise unless the token is for this client and this sign-in. Returns the subject."""
    seconds = now.timestamp()
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    party = claims.get("azp")
    if claims.get("iss") != issuer:
        raise wrong_token("it has another issuer")
    if client_id not in audiences or (len(audiences) > 1 and party is None):
        raise wrong_token("it is for another client")
    if party is not None and party != client_id:
        raise wrong_token("it was issued to another client")
    if not nonce or claims.get("nonce") != nonce:
        raise wrong_token("it belongs to another sign-in")
    if _number(claims, "exp") <= seconds - SKEW_SECONDS:
        raise wrong_token("it has expired")
    if _number(claims, "iat") > seconds + SKEW_SECONDS or _number(claims, "nbf", 0) > seconds + SKEW_SECONDS:
        raise wrong_token("it is from the future: check the clocks of both servers")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_CHARACTERS_MAX or "\0" in subject:
        raise wrong_token("it names nobody")
    return subject


def wrong_token(why: str) -> NotAuthenticated:
    return NotAuthenticated(
        f"The token of the identity provider is not valid: {why}",
        hint="Start again. If it happens every time, the operator checks the settings `oidc_*`",
    )


def _number(claims: Claims, name: str, default: float | None = None) -> float:
    value = claims.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_token(f"its `{name}` is not a number")
    return value


def _fits(key: Key, algorithm: str, kid: object) -> bool:
    return (
        key.get("kty") == ALGORITHMS[algorithm]
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (kid is None or key.get("kid") == kid)
    )


def _verifies(key: Key, algorithm: str, signature: bytes, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        _VERIFY[ALGORITHMS[algorithm]](key, algorithm, signature, signed)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        return False
    return True


def _verify_rsa(key: Key, algorithm: str, signature: bytes, signed: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    public = rsa.RSAPublicNumbers(_integer(key, "e"), _integer(key, "n")).public_key()
    if public.key_size < RSA_BITS_MIN:
        raise ValueError("the key is too short")
    digest = _digest(algorithm)
    if algorithm.startswith("PS"):
        pss = padding.PSS(padding.MGF1(digest), padding.PSS.DIGEST_LENGTH)
        public.verify(signature, signed, pss, digest)
    else:
        public.verify(signature, signed, padding.PKCS1v15(), digest)


def _verify_ec(key: Key, algorithm: str, signature: bytes, signed: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    name, size = _CURVES[algorithm]
    if key.get("crv") != name or len(signature) != 2 * size:
        raise ValueError("another curve")
    curve = ec.SECP256R1() if name == "P-256" else ec.SECP384R1()
    public = ec.EllipticCurvePublicNumbers(_integer(key, "x"), _integer(key, "y"), curve).public_key()
    first, second = int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
    public.verify(encode_dss_signature(first, second), signed, ec.ECDSA(_digest(algorithm)))


def _verify_ed25519(key: Key, algorithm: str, signature: bytes, signed: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if key.get("crv") != "Ed25519":
        raise ValueError("another curve")
    Ed25519PublicKey.from_public_bytes(_bytes(str(key.get("x", "")))).verify(signature, signed)


_VERIFY: Final[Mapping[str, Callable[[Key, str, bytes, bytes], None]]] = {
    "RSA": _verify_rsa,
    "EC": _verify_ec,
    "OKP": _verify_ed25519,
}


def _digest(algorithm: str) -> "HashAlgorithm":
    from cryptography.hazmat.primitives import hashes

    return {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}[algorithm[-3:]]


def _integer(key: Key, name: str) -> int:
    return int.from_bytes(_bytes(str(key.get(name, ""))), "big")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise wrong_token("it cannot be decoded") from None


def _object(part: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(_bytes(part), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise wrong_token("it cannot be decoded") from None
