"""Who the key in use belongs to, as the API has it."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from teraflock.wire.member import RoleWord


class WhoAmI(msgspec.Struct, frozen=True, kw_only=True):
    member_id: str
    member_name: str
    organisation_id: str
    organisation_name: str
    is_operator: bool
    roles: Mapping[str, RoleWord]
    """The member's, by project; the empty id stands for all. The key may reach less far, see below."""
    key_id: str
    project_id: str = ""
    """The one project the key reaches; empty: all that its member does."""
    role_max: RoleWord | None = None
    """The key may do no more than this role."""
    expires_at: datetime | None = None
