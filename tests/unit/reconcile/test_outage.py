"""When a guest counts as having kept running while the server did not watch."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from teraflock.instance.driver import Seen, Sighting
from teraflock.instance.model import InstanceId
from teraflock.reconcile.outage import ran_on

LAST = datetime(2026, 11, 15, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
RUNS = Sighting(instance_id=InstanceId("ins_1"), host="h", seen=Seen.RUNNING, started_at=LAST - SECOND)


class Known:
    """The fields of an instance that these rules read."""

    def __init__(self, running_since: datetime | None) -> None:
        self.running_since = running_since


@pytest.mark.parametrize(
    ("sighting", "running_since", "expected"),
    [
        (RUNS, LAST - 9 * SECOND, True),
        (replace(RUNS, started_at=LAST), None, True),
        (replace(RUNS, started_at=LAST + SECOND), LAST - 9 * SECOND, False),
        (replace(RUNS, started_at=LAST + SECOND), LAST + 2 * SECOND, True),
        (replace(RUNS, started_at=None), LAST, False),
        (replace(RUNS, seen=Seen.STOPPED), LAST, False),
        (replace(RUNS, seen=Seen.PENDING), LAST, False),
        (None, LAST, False),
    ],
    ids=[
        "started before the last reading",
        "started at the last reading",
        "started after it: another boot",
        "started after it, and known to run since then",
        "the engine does not report the start",
        "stands still",
        "still starting",
        "not there",
    ],
)
def test_only_the_same_guest_kept_running(
    sighting: Sighting | None, running_since: datetime | None, expected: bool
) -> None:
    assert ran_on(Known(running_since), sighting, LAST) is expected  # type: ignore[arg-type]
