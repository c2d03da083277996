"""What earlier runs of the same script measured, and how it narrows the estimate of the next one."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Final

from msgspec.structs import replace

from teraflock.cli.run.request import RunWords
from teraflock.wire.run import RunAnswer, RunEstimateBody

ONCE: Final = 0.10
"""How far the next step time may be from a single measured one."""
OFTEN: Final = 0.03
"""How far it may be beyond the lowest and highest of several."""


def script_digest(words: RunWords) -> str:
    """Identifies a script with its arguments. Empty: it is not a script."""
    name = words.script or (words.python.path if words.python else "")
    path = Path(words.workdir) / name
    if not name or not path.is_file():
        return ""
    return sha256(path.read_bytes() + "\0".join(("", *words.command)).encode()).hexdigest()


def measured_on(runs: Iterable[RunAnswer], script: str) -> dict[str, list[float]]:
    """The measured step times of a script, by GPU model. Only runs that ended well count."""
    found: dict[str, list[float]] = {}
    for run in runs:
        said = run.estimate
        seconds = run.progress.step_seconds if run.progress and run.state == "done" else None
        if script and seconds and said and said.script == script and said.gpu:
            found.setdefault(said.gpu, []).append(seconds)
    return found


def narrowed(estimate: RunEstimateBody, seconds: Sequence[float]) -> RunEstimateBody:
    """The estimate with the measured step time in place of the computed one."""
    margin = ONCE if len(seconds) == 1 else OFTEN
    step = (min(seconds) * (1 - margin), median(seconds), max(seconds) * (1 + margin))
    steps = estimate.steps
    hours = None if steps is None else tuple(each * steps / 3600 for each in step)
    return replace(
        estimate,
        source="measured",
        step_seconds=step,
        hours=(hours[0], hours[1], hours[2]) if hours else estimate.hours,
    )
