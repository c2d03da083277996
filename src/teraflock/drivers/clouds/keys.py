"""SSH keys of rented machines, derived from the installation's key: nothing has to be stored, or survive a crash.

A machine gets a host key of its own, derived from its launch token, so a client can verify it from the first
connection. The server logs in with one key per installation.
"""

import hmac
from collections.abc import Callable

import msgspec

Derive = Callable[[str], bytes]


class KeyPair(msgspec.Struct, frozen=True):
    private: str
    """In OpenSSH's format."""
    public: str
    """`ssh-ed25519 AAAA…`."""

    def __repr__(self) -> str:
        return f"KeyPair({self.public})"


def host_key(derive: Derive, token: str) -> KeyPair:
    return _pair(hmac.digest(derive("host key"), token.encode(), "sha256"))


def login_key(derive: Derive, mark: str) -> KeyPair:
    return _pair(hmac.digest(derive("login key"), mark.encode(), "sha256"))


def _pair(seed: bytes) -> KeyPair:
    from cryptography.hazmat.primitives import serialization as forms  # only servers with accounts load it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(seed)
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.OpenSSH, forms.NoEncryption())
    public = key.public_key().public_bytes(forms.Encoding.OpenSSH, forms.PublicFormat.OpenSSH)
    return KeyPair(private.decode("ascii"), public.decode("ascii"))
