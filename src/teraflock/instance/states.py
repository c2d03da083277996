"""The phases of an instance: a table of allowed changes, and named sets of phases.

`wanted` is what the tenant asked for, `phase` is what was reached, and a loop closes the gap. Only `rules.moved`
changes a phase, and every change writes an event in the same transaction.
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
    """Ordered, with everything claimed for it. Nothing of it exists on an engine yet."""
    STARTING = "starting"
    RUNNING = "running"
    CHANGING = "changing"
    """Between two runs on the same disk: a restart, a restore or a change of cards."""
    AWAY = "away"
    """Its host does not answer, so it is unknown whether it runs. Its operation waits and continues afterwards."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    """Its disk is kept. Cards, processors and memory are free for others."""
    FAILED = "failed"
    """Its launch failed, or it was lost, perhaps with its host, and must not be created again. Only its row and the
    reason remain."""
    DELETING = "deleting"
    GONE = "gone"


MOVES: Final[Mapping[Phase, Set[Phase]]] = {
    Phase.QUEUED: {Phase.STARTING, Phase.FAILED, Phase.DELETING},
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
    Phase.STOPPING: {Phase.STOPPED, Phase.FAILED, Phase.DELETING},
    Phase.STOPPED: {Phase.STARTING, Phase.STOPPING, Phase.FAILED, Phase.DELETING},
    Phase.FAILED: {Phase.DELETING},
    Phase.DELETING: {Phase.GONE},
    Phase.GONE: frozenset(),
}

ENDED: Final = frozenset({Phase.FAILED, Phase.GONE})
"""Only the row is left. It holds nothing on a host, and it counts against no quota."""

LOST_WITH_HOST: Final = frozenset({Phase.AWAY, Phase.STARTING})
"""If its host stays away, it can start on another one."""

WITH_DISK: Final = frozenset(Phase) - ENDED - {Phase.QUEUED, Phase.DELETING}
"""It has a disk on an engine, which is kept."""

BILLABLE: Final = frozenset({Phase.RUNNING, Phase.CHANGING})
"""The tenant pays for these phases, the operator for starts and stops. On a host that is away, no instance has one."""
