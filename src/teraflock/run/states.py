"""The phases of a run: a table of allowed changes, and named sets of phases.

`wanted` is what the tenant asked for, `phase` is what was reached. The loop `reconcile/runs.py` closes the gap, one act
at a time, and writes every change with its event in one transaction.
"""

from collections.abc import Mapping, Set
from enum import StrEnum
from typing import Final


class RunWanted(StrEnum):
    DONE = "done"
    CANCELLED = "cancelled"


class RunPhase(StrEnum):
    QUEUED = "queued"
    """Waits for an instance."""
    STARTING = "starting"
    """Its instance is being launched."""
    SETUP = "setup"
    """The setup program runs in the instance."""
    CACHING = "caching"
    """An image of the finished setup is being made, so that the next run starts faster."""
    COPYING = "copying"
    """Files and checkpoints are copied into the instance."""
    RUNNING = "running"
    STOPPING = "stopping"
    """The command got SIGTERM and has some seconds to save a checkpoint."""
    COLLECTING = "collecting"
    """The command ended. Outputs and the last checkpoints are copied to the server."""
    ENDING = "ending"
    """The instance is being deleted."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_LOST: Final = {RunPhase.ENDING}
"""From any phase with an instance: the instance is lost, or the run is cancelled."""

RUN_MOVES: Final[Mapping[RunPhase, Set[RunPhase]]] = {
    RunPhase.QUEUED: {RunPhase.STARTING, RunPhase.CANCELLED, RunPhase.FAILED},
    RunPhase.STARTING: {RunPhase.SETUP, RunPhase.COPYING} | _LOST,
    RunPhase.SETUP: {RunPhase.CACHING, RunPhase.COPYING} | _LOST,
    RunPhase.CACHING: {RunPhase.COPYING} | _LOST,
    RunPhase.COPYING: {RunPhase.RUNNING} | _LOST,
    RunPhase.RUNNING: {RunPhase.STOPPING, RunPhase.COLLECTING, RunPhase.STARTING} | _LOST,
    RunPhase.STOPPING: {RunPhase.COLLECTING} | _LOST,
    RunPhase.COLLECTING: {RunPhase.ENDING},
    RunPhase.ENDING: {RunPhase.QUEUED, RunPhase.DONE, RunPhase.FAILED, RunPhase.CANCELLED},
    RunPhase.DONE: frozenset(),
    RunPhase.FAILED: {RunPhase.QUEUED},
    RunPhase.CANCELLED: {RunPhase.QUEUED},
}
"""`tera run retry` queues a failed or cancelled run again. A guest that restarted leads from running to starting."""

OVER: Final = frozenset({RunPhase.DONE, RunPhase.FAILED, RunPhase.CANCELLED})
