"""What is learned from past availability."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.run.learn import learn
from teraflock.run.model import gang, sights_of
from teraflock.run.survival import (
    AGES,
    CLASSES,
    PRIOR_DOWN,
    PRIOR_UP,
    Survival,
    age_class,
    new_tally,
    tallies,
)

TICK = 1 / 6


def counted_tick_by_tick(series: list[bool], tick: float) -> list[list[float]]:
    """The same as `tallies`, without any cleverness: unavailable ticks and ends, available ticks and ends."""
    found = [[0.0] * CLASSES for _ in range(4)]
    seen = sights_of(series, tick)
    for now, after in pairwise(seen):
        age = age_class(now.age_hours)
        found[2 * now.up][age] += 1
        found[2 * now.up + 1][age] += now.up != after.up
    return found


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 120)), max_size=8),
    st.sampled_from([TICK, 195 / 3600, 1.0]),
)
def test_tallies_equal_counting_tick_by_tick(periods: list[tuple[bool, int]], tick: float) -> None:
    series = [up for up, length in periods for _ in range(length)]
    down, up = tallies(series, tick)
    assert [down.ticks, down.ends, up.ticks, up.ends] == counted_tick_by_tick(series, tick)


def test_rates_are_found_again_from_generated_history() -> None:
    draw = random.Random(4)
    series, up = [], True
    for _ in range(30_000):
        up = up if draw.random() > (0.05 if up else 0.2) else not up
        series.append(up)
    learned = learn([series], TICK)
    for rate in learned.zones[0].rates[:5]:
        assert rate == pytest.approx(0.308, rel=0.25)  # -ln(0.95) for each tick
    for rate in learned.chances.down.rates[:4]:
        assert rate == pytest.approx(1.339, rel=0.25)
    assert learned.chances.after_loss == (1.0, *[0.0] * CLASSES)


def test_without_history_the_prior_holds() -> None:
    learned = learn([()], TICK)
    assert learned.zones[0].rates == pytest.approx(PRIOR_UP)
    assert learned.chances.down.rates == pytest.approx(PRIOR_DOWN)
    several = learn([(), ()], TICK)
    assert several.chances.after_loss[0] == 0.5
    assert sum(several.chances.after_loss) == pytest.approx(1)


def test_the_prior_ages_well() -> None:
    """The longer a period has lasted, the longer it is expected to last."""
    for rates in (PRIOR_UP, PRIOR_DOWN):
        left = [Survival(rates).residual_hours(age, 48.0) for age in (0.1, 0.5, 2.0, 8.0, 20.0)]
        assert left == sorted(left)


@given(st.floats(0, 40), st.floats(0.01, 60))
def test_the_residual_equals_the_integral_of_the_survival(age: float, horizon: float) -> None:
    zone = Survival(PRIOR_UP)
    steps = 4_000
    total, survives = 0.0, 1.0
    for step in range(steps):
        rate = zone.rates[age_class(age + (step + 0.5) * horizon / steps)]
        total += survives * horizon / steps
        survives *= 1 - rate * horizon / steps
    assert zone.residual_hours(age, horizon) == pytest.approx(total, rel=0.02, abs=1e-4)


def test_old_periods_count_less_with_a_half_life() -> None:
    _, up = tallies([True, False] + [False] * 999, 1.0, half_life_hours=1000.0)
    assert sum(up.ends) == pytest.approx(0.5)


def test_zones_that_fail_together_leave_no_place() -> None:
    together = [True] * 20 + [False] * 5
    apart = [False] * 5 + [True] * 15 + [False] * 5
    same = learn([together * 20, together * 20], TICK).chances
    different = learn([together * 20, (apart[5:] + apart[:5])[::-1] * 20], TICK).chances
    assert same.after_loss[0] > 0.9
    assert different.after_loss[0] < same.after_loss[0]


def test_a_gang_is_available_when_all_its_machines_are() -> None:
    assert gang([0, 3, 4, 16], nodes=4) == (False, False, True, True)


def test_classes_cover_every_age() -> None:
    assert [age_class(end) for end in AGES] == list(range(CLASSES))
    assert age_class(0.0) == 0
    assert len(PRIOR_UP) == len(PRIOR_DOWN) == CLASSES == len(new_tally().ticks)


def test_zone_that_loses_places_oftener_is_expected_to_do_so_at_ages_never_seen() -> None:
    flaky = ([True] * 2 + [False] * 4) * 60
    calm = ([True] * 30 + [False] * 6) * 10
    zones = learn([flaky, calm], 1 / 6).zones
    for age in (3.0, 10.0, 30.0):
        assert zones[0].residual_hours(age, 48) < zones[1].residual_hours(age, 48)


def test_zone_that_was_never_there_is_like_the_others_together() -> None:
    seen = ([True] * 9 + [False] * 6) * 30
    zones = learn([seen, [False] * len(seen), seen], 1 / 6).zones
    assert zones[1].residual_hours(0.2, 48) == pytest.approx(zones[0].residual_hours(0.2, 48), rel=0.2)


def test_several_zones_are_expected_to_be_worse_than_they_were() -> None:
    seen = ([True] * 9 + [False] * 6) * 40
    one, two = (learn([seen] * zones, 1 / 6).chances for zones in (1, 2))
    for age in (0.1, 0.4, 1.2):
        assert two.up.residual_hours(age, 48) < one.up.residual_hours(age, 48)
        assert two.down.residual_hours(age, 48) > one.down.residual_hours(age, 48)
