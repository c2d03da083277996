"""Idempotency: a request that is sent twice with the same `Idempotency-Key` is carried out once.

Invariants:
- the handler and the storing of its response share one transaction, so even after `kill -9` everything created has its
  stored response;
- a key is claimed before the work starts: of two simultaneous requests, the second waits and gets the response of the
  first;
- the same key for a different request is refused; a failed request is not stored and can be retried;
- a response with a secret is encrypted with the client's API key, which is not stored: the database alone reveals none.
"""

import base64
import hmac
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from teraflock.api.call import Call, Raw
from teraflock.api.errors import IdempotencyKeyReused, MalformedRequest
from teraflock.api.route import Route
from teraflock.api.store import forget_before, keep_answer, kept, reserve
from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict
from teraflock.storage.database import Database, Transaction

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

KEY_CHARACTERS_MAX: Final = 255
KEPT_FOR: Final = timedelta(days=7)  # longer than any client retries

_NONCE_BYTES: Final = 12
_SEALED: Final = "2:"  # the version of the seal


def done_once(
    route: Route, call: Call, request: msgspec.Struct | None, handle: Callable[[Call], bytes]
) -> tuple[bytes, bool]:
    """The response, and whether it was stored earlier."""
    raw, services = call.raw, call.services
    key = _checked(raw.idempotency_key or "")
    digest = _digest(route, raw, request)

    def work(tx: Transaction) -> tuple[bytes, bool]:
        if not reserve(tx, call.scope, key, digest, services.clock.now()):
            before = kept(tx, call.scope, key)
            if before is None:
                raise Conflict("The stored response has just expired", hint="Send the request again")
            if before.digest != digest:
                raise IdempotencyKeyReused(
                    f"The `Idempotency-Key` {key} was used for a different request",
                    hint="Use a new key for a new request. Reuse a key only to retry the same request",
                )
            return (_opened(before.answer, raw, key) if route.secret else before.answer.encode()), True
        answer = handle(call.on(services.within(tx, locking=route.locks)))
        text = _sealed(answer, raw, key) if route.secret else answer.decode()
        keep_answer(tx, call.scope, key, text)
        return answer, False

    write = services.database.write_with_locks if route.locks else services.database.write
    return write(work)


def forget_old(database: Database, clock: Clock) -> int:
    """Delete responses that are too old to be requested again."""
    before = clock.now() - KEPT_FOR
    return database.write(lambda tx: forget_before(tx, before))


def _checked(key: str) -> str:
    if not 0 < len(key) <= KEY_CHARACTERS_MAX or not (key.isascii() and key.isprintable()) or " " in key:
        raise MalformedRequest(
            "Invalid `Idempotency-Key`",
            hint=f"Use up to {KEY_CHARACTERS_MAX} printable ASCII characters without spaces, such as a UUID",
        )
    return key


def _digest(route: Route, raw: Raw, request: msgspec.Struct | None) -> str:
    """The digest of a request. White space and the order of fields do not matter."""
    words = [route.name, raw.path, raw.query.decode("latin-1"), request]
    return sha256(msgspec.json.encode(words, order="deterministic")).hexdigest()


def _sealed(answer: bytes, raw: Raw, key: str) -> str:
    # Two responses to one key never have the same nonce unless they are the same.
    nonce = hmac.digest(raw.authorization.encode(), b"nonce " + answer, "sha256")[:_NONCE_BYTES]
    return _SEALED + base64.b64encode(nonce + _cipher(raw, key).encrypt(nonce, answer, None)).decode()


def _opened(text: str, raw: Raw, key: str) -> bytes:
    from cryptography.exceptions import InvalidTag

    if not text.startswith(_SEALED):
        raise Conflict(
            "This request was already carried out by an earlier version, whose response cannot be shown again",
            hint="See what it made, or send it with a new `Idempotency-Key`",
        )
    content = base64.b64decode(text.removeprefix(_SEALED))
    try:
        return _cipher(raw, key).decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], None)
    except InvalidTag:
        raise Conflict(
            "This request was already carried out, and its secret is shown only to the API key that sent it",
            hint="Use the same API key as before, or send a new `Idempotency-Key`",
        ) from None


def _cipher(raw: Raw, key: str) -> "ChaCha20Poly1305":
    """Its key is derived from the client's API key and from the `Idempotency-Key`."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(hmac.digest(raw.authorization.encode(), b"answer " + key.encode(), "sha256"))
