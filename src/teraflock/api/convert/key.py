"""API keys on the wire."""

from teraflock.tenant.model import (
    ApiKey,
    MadeKey,
)
from teraflock.wire.key import KeyAnswer, KeyMade


def key_answer(key: ApiKey) -> KeyAnswer:
    return KeyAnswer(
        id=key.id,
        name=key.name,
        member_id=key.member_id,
        project=key.project_id,
        role_max=key.role_max.value if key.role_max else None,
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
    )


def key_made(made: MadeKey) -> KeyMade:
    return KeyMade(key=key_answer(made.key), secret=made.secret)
