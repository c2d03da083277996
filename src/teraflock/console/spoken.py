"""Words of the API that pages translate: states, roles, modes. A test compares them with the catalogs."""

from typing import Final, get_args

from teraflock.console.navigation import SECTIONS
from teraflock.console.pages.costs import GROUPINGS, MARGINS
from teraflock.console.pages.team import TABS
from teraflock.offer.model import MODES, SORTS
from teraflock.offer.words import PERIODS
from teraflock.plan.model import SORTS as PLAN_SORTS
from teraflock.wire.instance import ModeWord, PhaseWord
from teraflock.wire.member import RoleWord

OPERATIONS: Final = (
    "launch", "start", "stop", "restart", "resize", "refit", "resize-restart", "snapshot", "restore",
    "restore-restart", "publish", "delete",
)  # fmt: skip
SPOKEN: Final = frozenset(
    {
        *get_args(PhaseWord), *get_args(RoleWord), *get_args(ModeWord), *OPERATIONS,
        "making", "ready", "draining", "free", "held",
        *MODES, *SORTS, *PERIODS, *PLAN_SORTS, *(title for _, title in (*GROUPINGS, *MARGINS)),
        *(section.title for section in SECTIONS), *(title for _, title, _, _ in TABS),
    }
)  # fmt: skip
