"""The health of the server on the wire. Public."""

from typing import Literal

import msgspec


class HealthAnswer(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["ok"]
    version: str
    engine: str
    """`simulated`: nothing is real. `mixed`: some sites are simulated; what runs there says so."""
    simulated: bool
    """Whether anything is simulated."""
