"""The events of a run. Pure. They never contain its command, its environment or its secrets."""

from collections.abc import Callable
from datetime import datetime

from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.run.model import Run


def run_event(run: Run, kind: str, now: datetime, random_bytes: Callable[[int], bytes]) -> Event:
    details: dict[str, str | int | float | bool | None] = {
        "name": run.name,
        "phase": run.phase,
        "attempt": run.attempt,
        "instance": run.instance_id,
        "exit_code": run.exit_code,
    }
    if run.problem:
        details["problem"] = run.problem
    return Event(
        id=EventId(new_id("evt", now, random_bytes)),
        at=now,
        kind=kind,
        subject=run.id,
        project=run.project_id,
        details=details,
    )
