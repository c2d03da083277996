"""An operator is warned about a pool once at each level, when it fills up."""

import itertools
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from teraflock.fleet.alarms import ALARMS_PER_HOUR, FILL_PERCENTS, Alarm, AlarmBudget, alarms, fill_level
from teraflock.fleet.model import DiskLimits, Host, HostId, HostReport, HostState

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def host(used: int, limits: DiskLimits = DiskLimits.HOLD) -> Host:
    return Host(
        id=HostId("hst_1"), site="local", name="lab", state=HostState.READY, address="", vcpus=1, ram_bytes=1,
        disk_bytes=100, disk_used_bytes=used, disk_limits=limits, simulated=False, registered_at=NOW, seen_at=NOW,
    )  # fmt: skip


def report(used: int, limits: DiskLimits = DiskLimits.HOLD) -> HostReport:
    return HostReport(
        name="lab", address="", vcpus=1, ram_bytes=1, disk_bytes=100, disk_used_bytes=used, disk_limits=limits
    )


@given(st.lists(st.integers(0, 100), min_size=2))
def test_each_level_is_reported_when_it_is_reached(fills: list[int]) -> None:
    for before, after in itertools.pairwise(fills):
        passed = [level for level in FILL_PERCENTS if before < level <= after]
        told = alarms(host(before), report(after))
        assert [alarm.details["level"] for alarm in told] == passed[-1:]


def test_pool_without_a_size_is_not_full() -> None:
    assert fill_level(0, 0) == 0


def test_lost_and_restored_disk_limits_are_reported() -> None:
    lost = alarms(host(0), report(0, DiskLimits.LOST))
    back = alarms(host(0, DiskLimits.LOST), report(0))
    assert [alarm.details["limits"] for alarm in (*lost, *back)] == ["lost", "hold"]
    assert alarms(host(0, DiskLimits.LOST), report(0, DiskLimits.LOST)) == []


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 90), st.integers(0, 300)), max_size=30))
def test_no_host_raises_more_alarms_in_an_hour_than_it_may(raised: list[tuple[str, int, int]]) -> None:
    budget, now = AlarmBudget(), datetime(2026, 11, 15, 12, tzinfo=UTC)
    told: dict[tuple[str, datetime], list[int]] = {}
    for host, minutes, count in raised:
        now += timedelta(minutes=minutes)
        allowed = len(budget.allowed(host, [Alarm("host.hot", {}, "")] * count, now))
        of_hour = told.setdefault((host, now.replace(minute=0)), [])
        assert allowed == min(count, ALARMS_PER_HOUR - sum(of_hour))
        of_hour.append(allowed)
