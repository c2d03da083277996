"""Signs requests with an account's credentials. A signer is the only part that knows them."""

from typing import Protocol

from teraflock.drivers.clouds.model import CloudCall

HIDDEN = "…"


class Signer(Protocol):
    def headers(self, call: CloudCall, content: bytes | None) -> dict[str, str]: ...

    def scrubbed(self, text: str) -> str:
        """A text without the credentials, for errors and logs: a provider may repeat what it was sent."""
        ...


class Bearer:
    """`Authorization: Bearer KEY`."""

    def __init__(self, key: str) -> None:
        self._key = key

    def headers(self, call: CloudCall, content: bytes | None) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"}

    def scrubbed(self, text: str) -> str:
        return text.replace(self._key, HIDDEN) if self._key else text

    def __repr__(self) -> str:
        return "Bearer(…)"
