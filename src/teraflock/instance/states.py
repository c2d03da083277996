"""The life of an instance as a table: which phase may follow which, and named sets of phases.

`wanted` is the tenant's word and `phase` what was reached; the loop closes the gap. `rules.move` is the one way to
change a phase, and every change leaves an event in its transaction.
"""

from collections.abc import Mapping, Set
from enum import StrEnum
from typing import Final


class Wanted(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    GONE = "gone"


class Phase(StrEnum):
    QUEUED = "queued"
    """Asked for and set aside; nothing of it exists on an engine yet."""
    STARTING = "starting"
    RUNNING = "running"
    CHANGING = "changing"
    """Between two runs on the same disk: restart, restore, a change of cards."""
    AWAY = "away"
    """Its host does not answer: nobody knows whether it runs. What was being done on it waits, and goes on after."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    """Its disk is kept; cards, processors and memory are free for others."""
    FAILED = "failed"
    """Could not be launched, or was lost and may not be made again. Only its row and the reason are left."""
    DELETING = "deleting"
    GONE = "gone"


MOVES: Final[Mapping[Phase, Set[Phase]]] = {
    Phase.QUEUED: {Phase.STARTING, Phase.DELETING},
    Phase.STARTING: {Phase.RUNNING, Phase.STOPPED, Phase.FAILED, Phase.DELETING},
    Phase.RUNNING: {
        Phase.CHANGING,
        Phase.STARTING,
        Phase.AWAY,
        Phase.STOPPING,
        Phase.FAILED,
        Phase.DELETING,
    },
    Phase.CHANGING: {Phase.RUNNING, Phase.AWAY, Phase.STOPPED, Phase.DELETING},
    Phase.AWAY: {
        Phase.RUNNING,
        Phase.CHANGING,
        Phase.STARTING,
        Phase.STOPPING,
        Phase.STOPPED,
        Phase.FAILED,
        Phase.DELETING,
    },
    Phase.STOPPING: {Phase.STOPPED, Phase.DELETING},
    Phase.STOPPED: {Phase.STARTING, Phase.STOPPING, Phase.FAILED, Phase.DELETING},
    Phase.FAILED: {Phase.DELETING},
    Phase.DELETING: {Phase.GONE},
    Phase.GONE: frozenset(),
}

LIVE: Final = frozenset(Phase) - {Phase.GONE, Phase.FAILED}
"""Counted against quotas."""
ON_ENGINE: Final = frozenset(
    {
        Phase.STARTING,
        Phase.RUNNING,
        Phase.CHANGING,
        Phase.AWAY,
        Phase.STOPPING,
        Phase.STOPPED,
        Phase.DELETING,
    }
)
"""Something of it may exist on an engine."""
BILLABLE: Final = frozenset({Phase.RUNNING, Phase.CHANGING})
"""Starting and stopping are the house's cost, not the tenant's. None of these on a host that is away in the books."""
