"""SSH keys of members as text."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from teraflock.words.table import Field, Fields
from teraflock.words.text import time_text

if TYPE_CHECKING:
    from teraflock.wire.ssh_key import SshKeyAnswer


def fields(members: Mapping[str, str]) -> "Fields[SshKeyAnswer]":
    """`members` maps ids to names."""
    return (
        Field("SSH KEY", lambda each: each.name, flexible=True),
        Field("ID", lambda each: each.id),
        Field("FINGERPRINT", lambda each: each.fingerprint, worth=5),
        Field("MEMBER", lambda each: members.get(each.member_id, each.member_id), worth=4),
        Field("ADDED AT (UTC)", lambda each: time_text(each.created_at), worth=3),
    )
