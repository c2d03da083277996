"""The sender and target of a request, as far as known. For the log only, never for decisions."""

import re
from typing import Final

from teraflock.tenant.model import Actor

TEXT_CHARACTERS_MAX: Final = 200
_SECRET: Final = re.compile(r"(tera(?:-session|-link)?)_[0-9A-Za-z]{16}_[0-9A-Za-z]+")


class Asked:
    """One request. The actor is set once the key is verified."""

    __slots__ = ("actor", "address", "method", "path", "request_id")

    def __init__(self, request_id: str, method: str, path: str, address: str) -> None:
        self.request_id = request_id
        self.method = method
        self.path = path
        self.address = address
        self.actor: Actor | None = None

    @property
    def source(self) -> str:
        """The source for counting log lines: the key, otherwise the address."""
        return self.actor.key_id if self.actor else self.address

    @property
    def group(self) -> str:
        """The group that has a bounded number of sources, because an organisation can create many keys."""
        return self.actor.organisation_id if self.actor else self.address

    def __str__(self) -> str:
        who = f", {self.actor.key_id} of {safe(self.actor.member_name)}" if self.actor else ""
        return f"{self.method} {safe(self.path)} from {safe(self.address)}{who}"


def safe(text: str) -> str:
    """Make a client's text safe for the log: one line of bounded length, without secrets."""
    plain = "".join(each if each.isprintable() else "?" for each in text)
    return _SECRET.sub(r"\1_…", plain)[:TEXT_CHARACTERS_MAX]
