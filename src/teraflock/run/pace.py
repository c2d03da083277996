"""How fast a command advances from one report of its progress to the next."""

from datetime import datetime
from typing import Final

from teraflock.run.model import RunProgress

PACES_MAX: Final = 31


def with_pace(before: RunProgress | None, step: int, now: datetime) -> tuple[float, ...]:
    """The paces, in seconds per step, with that since the report before. Nothing is added where an attempt begins."""
    if before is None:
        return ()
    if before.at is None or before.first_at is None or step <= before.step:
        return before.paces
    return (*before.paces, (now - before.at).total_seconds() / (step - before.step))[-PACES_MAX:]
