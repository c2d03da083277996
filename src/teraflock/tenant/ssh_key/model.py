"""Values of SSH keys."""

from datetime import datetime

import msgspec

from teraflock.tenant.model import MemberId


class SshKey(msgspec.Struct, frozen=True, kw_only=True):
    """A public key that opens every instance its member launches from now on."""

    id: str
    member_id: MemberId
    name: str
    public_key: str
    """One line, as in `authorized_keys`, without a comment."""
    fingerprint: str
    """As `ssh-keygen -l` prints it."""
    created_at: datetime
