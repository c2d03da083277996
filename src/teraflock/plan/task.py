"""What a server hands to the processes that estimate and plan."""

from typing import Literal

import msgspec


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """Work for the planner's processes."""

    what: Literal["estimate", "plan"]
    words: bytes
    """The request as JSON."""
    with_costs: bool
    """Whether the asker may know what own servers cost: operators alone."""
