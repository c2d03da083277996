"""The owner of the API key in use, on the wire."""

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
    """The member's roles by project. The empty id means all projects. The key may allow less, see below."""
    key_id: str
    project_id: str = ""
    """The project that the key is limited to. Empty: all projects of its member."""
    role_max: RoleWord | None = None
    """The role that the key is limited to."""
    expires_at: datetime | None = None
