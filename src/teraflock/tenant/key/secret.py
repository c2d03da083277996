"""The text of an API key, a session or a sign-in link: `tera_<16 characters of its id>_<secret>`.

Sessions start with `tera-session_` and links with `tera-link_`, so that none is taken for another.

Invariants: the secret is 256 random bits. Only its SHA-256 is stored, which for this many random bits is as secure as
a slow hash and takes a microsecond per request. Digests are compared in constant time.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Final

SECRET_BYTES: Final = 32
_PREFIXES: Final = {"tera": "key_", "tera-session": "ses_", "tera-link": "lnk_"}
_WORDS: Final = {prefix: word for word, prefix in _PREFIXES.items()}
_PREFIX_CHARACTERS: Final = 4
_ID_CHARACTERS: Final = 16
_SECRET_CHARACTERS: Final = 2 * SECRET_BYTES
_LENGTH_MAX: Final = 200


def new_secret(id: str, random_bytes: Callable[[int], bytes]) -> str:
    word = _WORDS[id[:_PREFIX_CHARACTERS]]
    return f"{word}_{id[_PREFIX_CHARACTERS:]}_{random_bytes(SECRET_BYTES).hex()}"


def id_of(secret: str) -> str | None:
    """The id of the key, session or link that a text claims to be, or None if the text is none of them."""
    if len(secret) > _LENGTH_MAX or not secret.isascii():
        return None
    word, _, rest = secret.partition("_")
    id, _, bits = rest.partition("_")
    if word not in _PREFIXES or len(id) != _ID_CHARACTERS or len(bits) != _SECRET_CHARACTERS:
        return None
    return _PREFIXES[word] + id


def digest_of(secret: str) -> str:
    return sha256(secret.encode("ascii")).hexdigest()


def is_secret(secret: str, digest: str) -> bool:
    return hmac.compare_digest(digest_of(secret), digest)
