"""SSH keys of members on the wire."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta


class SshKeyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    public_key: Annotated[str, Meta(min_length=1, max_length=8192)]
    """One line, such as the content of `~/.ssh/id_ed25519.pub`."""
    name: Annotated[str, Meta(max_length=100)] = ""
    """Empty: the comment at the end of the key."""


class SshKeyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    member_id: str
    name: str
    public_key: str
    fingerprint: str
    created_at: datetime


class SshKeyPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[SshKeyAnswer, ...]
    next: str | None = None
