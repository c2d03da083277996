"""The limits of a key that is created with another key: never wider than the other key.

The new key has the same project, at most the same role, and at most the same lifetime. The limits are compared, not
what they allow today, because a role granted later would widen one key and not the other.
"""

from datetime import datetime, timedelta
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.tenant.model import Actor, Role
from teraflock.tenant.rules import PERMISSIONS

LIFE_MAX: Final = timedelta(days=3650)


def key_within(
    actor: Actor, project_id: str, role_max: Role | None, expires_at: datetime | None
) -> str | None:
    """The first limit of the actor's key that a key with these limits would exceed, in words; None: none."""
    if actor.project_id and project_id != actor.project_id:
        return "are limited to the same project"
    if not within(role_max, actor.role_max):
        return f"have at most the role `{actor.role_max}`"
    if actor.expires_at and (expires_at is None or expires_at > actor.expires_at):
        return f"expire by {actor.expires_at:%Y-%m-%d %H:%M} UTC"
    return None


def within(role: Role | None, limit: Role | None) -> bool:
    """Whether one role limit is within another. None is no limit."""
    return limit is None or (role is not None and PERMISSIONS[role] <= PERMISSIONS[limit])


def check_life(life: timedelta | None) -> None:
    if life is not None and not timedelta() < life <= LIFE_MAX:
        raise BadInput(
            "A key must be valid for more than zero seconds and at most ten years",
            hint="Leave the lifetime out for a key that never expires",
        )
