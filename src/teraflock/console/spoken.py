"""Words of the API that pages translate: states, roles, modes. A test compares them with the catalogs."""

from typing import Final, get_args

from teraflock.console.navigation import SECTIONS
from teraflock.console.pages.alerts import MESSAGES
from teraflock.console.pages.costs import GROUPINGS, MARGINS
from teraflock.console.pages.network_tabs import TABS as NETWORK_TABS
from teraflock.console.pages.run_comparison import TITLES
from teraflock.console.pages.team import TABS
from teraflock.console.pages.volumes import TABS as STORAGE_TABS
from teraflock.offer.model import MODES, SORTS
from teraflock.offer.words import PERIODS
from teraflock.plan.model import SORTS as PLAN_SORTS
from teraflock.wire.acl import ActionWord
from teraflock.wire.balancer import BackendStateWord
from teraflock.wire.instance import ModeWord, PhaseWord
from teraflock.wire.member import RoleWord
from teraflock.wire.run import RunPhaseWord
from teraflock.wire.security_group import DirectionWord

OPERATIONS: Final = (
    "launch", "start", "stop", "restart", "resize", "refit", "resize-restart", "snapshot", "restore",
    "restore-restart", "publish", "delete",
)  # fmt: skip
SPOKEN: Final = frozenset(
    {
        *get_args(PhaseWord), *get_args(RoleWord), *get_args(ModeWord), *OPERATIONS,
        "making", "ready", "broken", "unknown", "draining", "free", "held", "attached", "detaching",
        "restoring", "uploading",
        *MODES, *SORTS, *PERIODS, *PLAN_SORTS, *(title for _, title in (*GROUPINGS, *MARGINS)),
        *get_args(RunPhaseWord), *get_args(BackendStateWord), *get_args(DirectionWord), *get_args(ActionWord),
        "requested", "offered", "active", "waiting", "launched", "lost", "refused",
        *MESSAGES.values(), *TITLES, *(title for _, title in (*NETWORK_TABS, *STORAGE_TABS)),
        *(section.title for section in SECTIONS), *(title for _, title, _, _ in TABS),
    }
)  # fmt: skip
