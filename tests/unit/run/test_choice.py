"""Where a run with a deadline goes: the policy in the words of runs, and the history that it learns from."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from teraflock.base.clock import HOUR_US
from teraflock.run.checkpoint import (
    GuestEntry,
    checkpoint_every_seconds,
    copied_bytes,
    egress_seconds,
    measured_save_seconds,
    save_seconds,
    saved_seconds,
)
from teraflock.run.choice import RunPricing, choose
from teraflock.run.guard import CHANGEOVER_HOURS, SPOT, STEADY, TICK_HOURS
from teraflock.run.learn import learn
from teraflock.run.model import Checkpoint, Run, RunEstimate, RunId, RunSpec, Sight
from teraflock.run.sighting.model import SpotPeriod
from teraflock.run.sighting.rules import changeover_hours, noted, place_of, series_of, sight_of
from teraflock.run.states import RunPhase
from teraflock.tenant.model import MemberId, ProjectId

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
KNOWN = learn([()], TICK_HOURS)
CHEAP = RunPricing(spot_micros=1_000_000, steady_micros=3_145_000)
UP, DOWN = Sight(True, 2.0), Sight(False, 2.0)


def run_of(work: float, deadline: float | None) -> Run:
    spec = RunSpec(
        command=("train",),
        mode="spot",
        deadline=None if deadline is None else NOW + timedelta(hours=deadline),
        estimate=RunEstimate(hours=(work, work, work)),
    )
    return Run(
        id=RunId("run_1"), project_id=ProjectId("prj_1"), name="job", phase=RunPhase.QUEUED, spec=spec,
        created_at=NOW, created_by=MemberId("mem_1"), since=NOW, due_at=NOW,
    )  # fmt: skip


def test_run_without_deadline_takes_spot_or_waits_for_it() -> None:
    assert choose(run_of(10, None), NOW, UP, None, CHEAP, KNOWN).place == SPOT
    assert choose(run_of(10, None), NOW, DOWN, None, CHEAP, KNOWN).place is None


def test_run_takes_cheap_spot_and_waits_while_there_is_time() -> None:
    assert choose(run_of(10, 40), NOW, UP, None, CHEAP, KNOWN).place == SPOT
    assert choose(run_of(10, 40), NOW, DOWN, None, CHEAP, KNOWN).place is None
    assert choose(run_of(10, 10.25), NOW, UP, None, CHEAP, KNOWN).place == STEADY


def test_spot_at_the_price_of_on_demand_is_not_worth_its_risk() -> None:
    alike = RunPricing(spot_micros=3_000_000, steady_micros=3_000_000)
    assert choose(run_of(10, 14), NOW, UP, None, alike, KNOWN).place == STEADY


def test_run_on_demand_goes_back_to_spot_that_lasts() -> None:
    settled = Sight(True, 20.0)
    assert choose(run_of(20, 60), NOW, settled, STEADY, CHEAP, KNOWN).place == SPOT
    assert choose(run_of(20, 60), NOW, DOWN, STEADY, CHEAP, KNOWN).place != SPOT
    assert choose(run_of(0.05, 60), NOW, settled, STEADY, CHEAP, KNOWN).place == STEADY, (
        "a move would cost more"
    )


def test_without_prices_the_guard_alone_decides() -> None:
    assert choose(run_of(10, 40), NOW, UP, None, None, KNOWN).place == SPOT
    assert choose(run_of(10, 40), NOW, UP, STEADY, None, KNOWN).place == STEADY
    assert choose(run_of(10, 10.25), NOW, UP, None, None, KNOWN).place == STEADY


@given(
    work=st.floats(0.5, 12), slack=st.floats(0.4, 6), series=st.lists(st.booleans(), min_size=4, max_size=40)
)
@settings(max_examples=15, deadline=None)
def test_choices_never_make_a_run_late(work: float, slack: float, series: list[bool]) -> None:
    """Spot comes and goes. What is done on demand or on spot counts; each move costs a changeover."""
    deadline = work + CHANGEOVER_HOURS + slack
    left, now, held, overhead, age = work, NOW, None, 0.0, TICK_HOURS
    end = NOW + timedelta(hours=deadline)
    for tick in range(int(deadline / TICK_HOURS) + 1):
        up = series[tick % len(series)]
        held = None if held == SPOT and not up else held
        run = run_of(left, (end - NOW).total_seconds() / 3600)
        place = choose(run, now, Sight(up, age), held, CHEAP, KNOWN).place
        assert place != SPOT or up
        overhead = CHANGEOVER_HOURS if place is not None and place != held else overhead
        done = 0.0 if place is None else max(0.0, TICK_HOURS - overhead)
        overhead, held = max(0.0, overhead - TICK_HOURS), place
        left, now = left - done, now + timedelta(hours=TICK_HOURS)
        age = age + TICK_HOURS if series[(tick + 1) % len(series)] == up else TICK_HOURS
        if left <= 1e-6:
            break
    assert left <= 1e-6
    assert now <= end + timedelta(hours=TICK_HOURS)


def test_history_of_a_place_is_kept_in_periods() -> None:
    rows: dict[int, SpotPeriod] = {}
    last = None
    for minute, up in ((0, True), (1, True), (30, True), (60, False), (61, False), (90, True)):
        for each in noted(last, "own/V100", minute * HOUR_US // 60, up=up):
            rows[each.from_us] = last = each
    found = sorted(rows.values(), key=lambda each: each.from_us)
    assert [(each.up, (each.until_us - each.from_us) * 60 // HOUR_US) for each in found] == [
        (True, 60), (False, 30), (True, 0),
    ]  # fmt: skip
    assert series_of(found) == (*[True] * 6, *[False] * 3, True)
    assert sight_of(last, 150 * HOUR_US // 60, up=True) == Sight(True, 1.0)
    assert sight_of(last, 150 * HOUR_US // 60, up=False).age_hours < 0.2


def test_long_silence_begins_a_new_period() -> None:
    last = SpotPeriod(place="own/", from_us=0, until_us=HOUR_US, up=True)
    (new,) = noted(last, "own/", 20 * HOUR_US, up=True)
    assert (new.from_us, new.until_us) == (20 * HOUR_US, 20 * HOUR_US)


def test_measured_changeover_has_a_margin_and_needs_several_starts() -> None:
    assert changeover_hours([], 0.2) == 0.2
    assert changeover_hours([60, 60], 0.2) == 0.2, "two starts may be two lucky ones"
    assert changeover_hours([3600], 0.2) == 1.5, "but a slow one is believed"
    assert changeover_hours([360, 300, 240], 0.2) == 0.15
    assert changeover_hours([1, 1, 1], 0.2) == 0.05


@given(st.lists(st.integers(0, 20_000), max_size=30))
def test_changeover_is_never_below_a_measured_start(seconds: list[int]) -> None:
    assert all(changeover_hours(seconds, 0.2) >= each / 3600 for each in seconds)


def test_slow_starts_leave_less_time_for_spot_and_quick_ones_keep_the_reserve() -> None:
    tight = run_of(10, 10.25)
    assert choose(tight, NOW, UP, None, CHEAP, KNOWN, 0.05).place == STEADY
    slow = run_of(10, 11)
    assert choose(slow, NOW, UP, None, CHEAP, KNOWN, 0.05).place == SPOT
    assert choose(slow, NOW, UP, None, CHEAP, KNOWN, 0.9).place == STEADY


def test_places_are_named_by_what_is_rented() -> None:
    assert place_of(RunSpec(command=("a",), site="sky", type="gpu", region="east")) == "sky/gpu/east"
    assert place_of(RunSpec(command=("a",))) == "own/"


def test_checkpoint_interval_follows_size_and_hazard() -> None:
    assert checkpoint_every_seconds(2.0, 10.0) == 379
    assert checkpoint_every_seconds(2.0, save_seconds(50_000_000_000)) == 1200
    assert checkpoint_every_seconds(0.5, 10.0) < checkpoint_every_seconds(72.0, 10.0)
    assert save_seconds(None) == 10.0
    assert save_seconds(10) == 1.0


def test_measured_save_time_replaces_the_one_from_the_size() -> None:
    assert save_seconds(50_000_000_000, measured=4.0) == 4.0
    assert save_seconds(None, measured=0.01) == 1.0, (
        "the command also does something before it opens the file"
    )


def test_save_time_is_measured_only_where_it_can_be() -> None:
    second = 10**9
    entry = GuestEntry(
        name="a", mark="m", size_bytes=1, begun_ns=5 * second, written_ns=7 * second, done_ns=8 * second
    )
    assert saved_seconds(entry, ()) == 3.0
    assert saved_seconds(replace(entry, begun_ns=0), ()) is None, "unknown to the file system"
    assert saved_seconds(replace(entry, written_ns=second), ()) is None, "copied there"
    kept = Checkpoint(
        id="c", run_id=RunId("r"), name="a", mark="m", written_ns=4 * second, size_bytes=1, digest="", pulled_at=NOW,
        saved_seconds=9.0,
    )  # fmt: skip
    assert saved_seconds(entry, [kept]) == 3.0
    over = replace(kept, written_ns=6 * second)
    assert saved_seconds(entry, [over]) is None, "the same file was written over"
    assert saved_seconds(entry, [replace(over, name="b")]) == 3.0
    others = [replace(kept, saved_seconds=each) for each in (2.0, None, 3.0)]
    assert measured_save_seconds([kept, *others]) == 3.0
    assert measured_save_seconds([others[1]]) is None


def test_traffic_that_costs_money_makes_checkpoints_rarer() -> None:
    seconds = egress_seconds(20_000_000_000, 90_000, 3_600_000)  # 1.80 USD, on a machine of 3.60 USD per hour
    assert seconds == 1800
    assert checkpoint_every_seconds(2.0, 40 + seconds) > 6 * checkpoint_every_seconds(2.0, 40)
    assert egress_seconds(20_000_000_000, 90_000, 0) == 0
    assert copied_bytes(1.0, 100, 600) == 700
