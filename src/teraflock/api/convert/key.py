"""API keys on the wire."""

from teraflock.base.filling import filled
from teraflock.tenant.model import (
    ApiKey,
    MadeKey,
)
from teraflock.wire.key import KeyAnswer, KeyMade


def key_answer(key: ApiKey) -> KeyAnswer:
    return filled(
        KeyAnswer, key, project=key.project_id, role_max=key.role_max.value if key.role_max else None
    )


def key_made(made: MadeKey) -> KeyMade:
    return KeyMade(key=key_answer(made.key), secret=made.secret)
