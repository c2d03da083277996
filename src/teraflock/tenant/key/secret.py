"""The text of an API key: `tera_<16 characters of its id>_<secret>`.

Invariants: the secret is 256 random bits. Only its SHA-256 is stored, which for this many random bits is as secure as
a slow hash and takes a microsecond per request. Digests are compared in constant time.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from teraflock.tenant.model import KeyId

SECRET_BYTES: Final = 32
_WORD: Final = "tera"
_ID_PREFIX: Final = "key_"
_ID_CHARACTERS: Final = 16
_SECRET_CHARACTERS: Final = 2 * SECRET_BYTES
_LENGTH: Final = len(_WORD) + 1 + _ID_CHARACTERS + 1 + _SECRET_CHARACTERS


def new_secret(id: KeyId, random_bytes: Callable[[int], bytes]) -> str:
    return f"{_WORD}_{id.removeprefix(_ID_PREFIX)}_{random_bytes(SECRET_BYTES).hex()}"


def key_id_of(secret: str) -> KeyId | None:
    """The id of the key that a text claims to be, or None if the text is not a key."""
    if len(secret) != _LENGTH or not secret.isascii():
        return None
    word, _, rest = secret.partition("_")
    id, _, bits = rest.partition("_")
    if word != _WORD or len(id) != _ID_CHARACTERS or len(bits) != _SECRET_CHARACTERS:
        return None
    return KeyId(_ID_PREFIX + id)


def digest_of(secret: str) -> str:
    return sha256(secret.encode("ascii")).hexdigest()


def is_secret(secret: str, digest: str) -> bool:
    return hmac.compare_digest(digest_of(secret), digest)
