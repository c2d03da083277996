"""A create that is asked for twice with one idempotency key is done once.

What holds: the key is kept in the transaction that makes the thing, so either both are there or neither; the same key
with another request is refused; keys of one member never meet those of another.
"""

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from typing import Final

import msgspec

from teraflock.base.errors import BadInput, Conflict
from teraflock.storage.database import Transaction
from teraflock.tenant import store
from teraflock.tenant.model import Actor

KEY_CHARACTERS_MAX: Final = 255


def once(
    tx: Transaction,
    actor: Actor,
    key: str,
    request: object,
    make: Callable[[], str],
    *,
    now: datetime,
) -> tuple[str, bool]:
    """What `make` returned for this key, and whether that was just now. Without a key it is made each time.

    `request` is whatever was asked for, as something that can be written as JSON.
    """
    if not key:
        return make(), True
    _check(key)
    digest = sha256(msgspec.json.encode(request, order="deterministic")).hexdigest()
    kept = store.kept_answer(tx, actor.member_id, key)
    if kept is None:
        answer = make()
        store.keep_answer(tx, actor.member_id, key, digest, answer, now)
        return answer, True
    if kept[0] != digest:
        raise Conflict(
            "This idempotency key came before with another request", hint="Take a new key for a new request"
        )
    return kept[1], False


def _check(key: str) -> None:
    if len(key) > KEY_CHARACTERS_MAX or not key.isascii() or not key.isprintable():
        raise BadInput(
            "This cannot be an idempotency key",
            hint=f"Up to {KEY_CHARACTERS_MAX} characters of ASCII that can be printed",
        )
