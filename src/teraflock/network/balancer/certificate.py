"""Checks the certificates that tenants give, and writes them again, so that nothing else gets into the file."""

from datetime import datetime
from typing import TYPE_CHECKING, Final

from teraflock.base.errors import BadInput
from teraflock.network.balancer.model import Certificate

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

CHAIN_MAX: Final = 10
CURVES: Final = ("secp256r1", "secp384r1", "secp521r1")
RSA_BITS: Final = (2048, 4096)
"""Smaller keys are weak, and each connection would pay for larger ones."""


def certificate_from(chain_text: str, key_text: str, *, now: datetime) -> Certificate:
    """Raise `BadInput` unless both texts are PEM, the key fits the first certificate, and it is valid now."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    chain, key = _chain(chain_text), _key(key_text)
    if _public(key.public_key()) != _public(chain[0].public_key()):
        raise BadInput(
            "The certificate does not match the key",
            hint="Give the key that the certificate was made for, and your own certificate first in its file",
        )
    first, last = chain[0].not_valid_before_utc, chain[0].not_valid_after_utc
    if not first <= now < last:
        raise BadInput(
            f"The certificate is valid from {first:%Y-%m-%d} to {last:%Y-%m-%d} only",
            hint="Give a certificate that is valid now",
        )
    return Certificate(
        chain="".join(each.public_bytes(Encoding.PEM).decode() for each in chain),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        ends_at=last,
    )


def _chain(text: str) -> "list[x509.Certificate]":
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise BadInput(
            "The certificate is not in PEM format", hint="Its file begins with `-----BEGIN CERTIFICATE-----`"
        ) from None
    if len(found) > CHAIN_MAX:
        raise BadInput(
            f"The certificate's file has {len(found)} certificates", hint=f"Give at most {CHAIN_MAX}"
        )
    return found


def _key(text: str) -> "PrivateKeyTypes":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(text.encode(), password=None)
    except TypeError:
        raise BadInput(
            "The key has a password", hint="Write it without one: `openssl pkey -in KEY -out NEW_KEY`"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise BadInput(
            "The key is not in PEM format", hint="Its file begins with `-----BEGIN PRIVATE KEY-----`"
        ) from None
    is_rsa = isinstance(key, rsa.RSAPrivateKey) and RSA_BITS[0] <= key.key_size <= RSA_BITS[1]
    is_curve = isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in CURVES
    if not (is_rsa or is_curve):
        raise BadInput(
            "The key is of a kind that balancers do not use",
            hint=f"Use an elliptic curve key (P-256, P-384 or P-521), or RSA with {RSA_BITS[0]} to {RSA_BITS[1]} bits",
        )
    return key


def _public(key: "PublicKeyTypes") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
