"""The tasks that a server sends to its planner processes."""

from typing import Literal

import msgspec


class PlannerTask(msgspec.Struct, frozen=True, kw_only=True):
    what: Literal["estimate", "plan", "recommend"]
    words: bytes
    """The request as JSON."""
    with_costs: bool
    """Whether the caller may see what own hosts cost. Only operators may."""
