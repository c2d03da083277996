"""Ends the process on demand, as `kill -9` would, to test that the next one continues its work.

A point is an operation, a step and a side of it, such as `launch.create:after`; while undoing,
`launch.create:undo:after`.
"""

import os
import signal
from collections.abc import Callable

from teraflock.base.errors import BadInput
from teraflock.instance.model import Operation
from teraflock.instance.steps import STEPS


def points(operation: Operation) -> tuple[str, ...]:
    """Return every point of an operation at which a process can end."""
    found: list[str] = []
    for step in STEPS[operation]:
        sides = ("before", "after", *(("undo:before", "undo:after") if step.undo else ()))
        found += (f"{operation}.{step.name}:{side}" for side in sides)
    return tuple(found)


def dies_at(words: str) -> Callable[[str], None]:
    """Return the hook that the loops call at every point. It ends the process at the named points, separated
    by commas."""
    named = frozenset(word.strip() for word in words.split(",") if word.strip())
    if unknown := named - {point for operation in STEPS for point in points(operation)}:
        raise BadInput(
            f"Unknown point `{min(unknown)}`",
            hint="Write it as `launch.create:after`: an operation, a step, `before` or `after`",
        )

    def reach(point: str) -> None:
        if point in named:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach
