"""The events of a run. Pure. They never contain its command, its environment or its secrets."""

from datetime import datetime

from teraflock.base.events import Details, Event, RandomBytes, new_event
from teraflock.run.model import Run


def run_event(run: Run, kind: str, now: datetime, random_bytes: RandomBytes) -> Event:
    details: Details = {
        "name": run.name,
        "phase": run.phase,
        "attempt": run.attempt,
        "instance": run.instance_id,
        "exit_code": run.exit_code,
    }
    if run.problem:
        details["problem"] = run.problem
    return new_event(kind, run.id, now, random_bytes, details, project=run.project_id)
