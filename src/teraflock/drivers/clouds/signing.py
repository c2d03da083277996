"""Signs requests with an account's credentials. A signer is the only part that knows them."""

from datetime import datetime
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.drivers.clouds.calls import CloudCall, CloudReply

HIDDEN: Final = "…"


class SigningRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it will be sent, for signers that cover all of it."""

    method: str
    url: str
    headers: dict[str, str]
    content: bytes
    at: datetime


class Signer:
    """The base of all signers. `secrets` are removed from texts."""

    def __init__(self, *secrets: str) -> None:
        self._secrets = tuple(each for each in secrets if each)

    def preparation(self, now: datetime) -> CloudCall | None:
        """A call that must be answered first, such as one for a token. None: nothing is needed."""
        return None

    def prepared(self, reply: CloudReply, now: datetime) -> None:
        """Keep what the preparation returned."""

    def refused(self) -> None:
        """The provider did not accept the signature: prepare again."""

    def headers(self, request: SigningRequest) -> dict[str, str]:
        """Headers to add to a request."""
        return {}

    def scrubbed(self, text: str) -> str:
        """A text without the credentials, for errors and logs: a provider may repeat what it was sent."""
        for each in self._secrets:
            text = text.replace(each, HIDDEN)
        return text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({HIDDEN})"


class Bearer(Signer):
    """The key in a header: `Authorization: Bearer KEY`, or one that the provider defines."""

    def __init__(self, key: str, *, header: str = "Authorization", prefix: str = "Bearer ") -> None:
        super().__init__(key)
        self._header = {header: f"{prefix}{key}"}

    def headers(self, request: SigningRequest) -> dict[str, str]:
        return self._header


def parts_of(secret: str, title: str, *names: str) -> list[str]:
    """The parts of credentials that are written in one line with colons between them."""
    parts = [each.strip() for each in secret.strip().split(":", len(names) - 1)]
    if len(parts) != len(names) or not all(parts):
        raise BadInput(f"Credentials of {title} are `{':'.join(names)}`", hint="All parts in one line")
    return parts
