"""A request to a fake with its response, as judges see it."""

from collections.abc import Mapping
from typing import NamedTuple


class Exchange(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes | None
    status: int
    answered: Mapping[str, str]
    """The headers of the response."""
    body: bytes
