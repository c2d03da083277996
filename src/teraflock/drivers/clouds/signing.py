"""Signs requests with an account's credentials. A signer is the only part that knows them."""

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

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

    def scrubbed_reply(self, reply: CloudReply) -> CloudReply:
        """A reply whose words may be shown. It is scrubbed as a whole: a cut text may end within a secret."""
        return replace(reply, text=self.scrubbed(reply.text), body=self._scrubbed_value(reply.body))

    def _scrubbed_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.scrubbed(value)
        if isinstance(value, dict):
            return {name: self._scrubbed_value(each) for name, each in value.items()}
        return [self._scrubbed_value(each) for each in value] if isinstance(value, list) else value

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
