"""A creating request that is sent twice with one `Idempotency-Key` is done once.

What holds:
- the whole handler runs inside one transaction, and its answer is kept in that same transaction: whatever is made has
  its answer beside it, after `kill -9` too;
- a key is taken before the work begins: of two requests at once, the second waits, and finds the answer of the first;
- the same key for another request is refused; a request that failed is not kept, and may be tried again;
- an answer with a secret in it is sealed with the asker's own key, which is not kept: the database alone opens none.
"""

import base64
import hmac
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import Final

import msgspec

from teraflock.api.call import Call, Raw
from teraflock.api.errors import IdempotencyKeyReused, MalformedRequest
from teraflock.api.route import Route
from teraflock.api.store import forget_before, keep_answer, kept, reserve
from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict
from teraflock.storage.database import Database, Transaction

KEY_CHARACTERS_MAX: Final = 255
KEPT_FOR: Final = timedelta(days=7)  # longer than anyone retries

_TAG_BYTES: Final = 32


def done_once(
    route: Route, call: Call, request: msgspec.Struct | None, handle: Callable[[Call], bytes]
) -> tuple[bytes, bool]:
    """The answer, and whether it was kept from before."""
    raw, services = call.raw, call.services
    key = _checked(raw.idempotency_key or "")
    digest = _digest(route, raw, request)

    def work(tx: Transaction) -> tuple[bytes, bool]:
        if not reserve(tx, call.scope, key, digest, services.clock.now()):
            before = kept(tx, call.scope, key)
            if before is None:
                raise Conflict("The kept answer was just removed", hint="Send the request again")
            if before.digest != digest:
                raise IdempotencyKeyReused(
                    f"The `Idempotency-Key` {key} was used for another request",
                    hint="Use a new key for a new request, and the same one only to send the same request again",
                )
            return (_opened(before.answer, raw, key) if route.secret else before.answer.encode()), True
        answer = handle(call.on(services.within(tx, locking=route.locks)))
        text = _sealed(answer, raw, key) if route.secret else answer.decode()
        keep_answer(tx, call.scope, key, text)
        return answer, False

    write = services.database.write_with_locks if route.locks else services.database.write
    return write(work)


def forget_old(database: Database, clock: Clock) -> int:
    """Drop answers nobody will ask for again."""
    before = clock.now() - KEPT_FOR
    return database.write(lambda tx: forget_before(tx, before))


def _checked(key: str) -> str:
    if not 0 < len(key) <= KEY_CHARACTERS_MAX or not (key.isascii() and key.isprintable()) or " " in key:
        raise MalformedRequest(
            "The `Idempotency-Key` cannot be taken",
            hint=f"Up to {KEY_CHARACTERS_MAX} printable ASCII characters without blanks; a UUID is good",
        )
    return key


def _digest(route: Route, raw: Raw, request: msgspec.Struct | None) -> str:
    """Of what is asked for: blanks and the order of fields do not count."""
    words = [route.name, raw.path, raw.query.decode("latin-1"), request]
    return sha256(msgspec.json.encode(words, order="deterministic")).hexdigest()


def _sealed(answer: bytes, raw: Raw, key: str) -> str:
    tag = _tag(raw, key, answer)
    return base64.b64encode(tag + _masked(answer, raw, tag)).decode()


def _opened(text: str, raw: Raw, key: str) -> bytes:
    content = base64.b64decode(text)
    tag = content[:_TAG_BYTES]
    answer = _masked(content[_TAG_BYTES:], raw, tag)
    if not hmac.compare_digest(tag, _tag(raw, key, answer)):
        raise Conflict(
            "This was made already, and its secret is shown again only to the key that asked for it",
            hint="Ask with the same key as before, or make another with a new `Idempotency-Key`",
        )
    return answer


def _tag(raw: Raw, key: str, answer: bytes) -> bytes:
    return hmac.digest(raw.authorization.encode(), b"tag " + key.encode() + b" " + answer, "sha256")


def _masked(content: bytes, raw: Raw, tag: bytes) -> bytes:
    """The content under a mask that only the asker's secret yields, another for every answer; twice is not at all."""
    secret = raw.authorization.encode()
    blocks = range(-(-len(content) // _TAG_BYTES))
    mask = b"".join(hmac.digest(secret, b"mask %d " % block + tag, "sha256") for block in blocks)
    return bytes(a ^ b for a, b in zip(content, mask, strict=False))
