"""How far a key reaches that is made with another: never beyond it.

A key made with a key lies within it: no other project, no role beyond, no longer life. The limits are compared and not
what they allow today, for a role given later would widen the one key and not the other.
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
    """The first limit of the actor's own key that a key with these would leave, in words; None: it keeps them all."""
    if actor.project_id and project_id != actor.project_id:
        return "reach the same project"
    if not within(role_max, actor.role_max):
        return f"do no more than `{actor.role_max}`"
    if actor.expires_at and (expires_at is None or expires_at > actor.expires_at):
        return f"last no longer than {actor.expires_at:%Y-%m-%d %H:%M} UTC"
    return None


def within(role: Role | None, limit: Role | None) -> bool:
    """Whether one cap lies within another; None is no cap."""
    return limit is None or (role is not None and PERMISSIONS[role] <= PERMISSIONS[limit])


def check_life(life: timedelta | None) -> None:
    if life is not None and not timedelta() < life <= LIFE_MAX:
        raise BadInput(
            "A key lives for some time, and for ten years at most",
            hint="Leave it out for a key that never expires",
        )
