"""Where the policy sends a run: prices, survival, changeover, egress."""

import pytest
from tests.unit.run.worlds import ALWAYS, TICK, cold_policy, memoryless, on_demand, rows, spot, terms

from teraflock.base.errors import BadInput
from teraflock.run.learn import Chances, Knowledge
from teraflock.run.model import RunPlace, RunState, Sight
from teraflock.run.policy import SpotPolicy
from teraflock.run.simulate import replay
from teraflock.run.survival import CLASSES, Survival

UP, DOWN = Sight(True, 2.0), Sight(False, 2.0)
START = RunState(left_hours=48, time_left_hours=60)


def two_zones(first: float, second: float, *places: RunPlace) -> SpotPolicy:
    """Two zones whose available periods end at these rates per hour."""
    zones = Survival((first,) * CLASSES), Survival((second,) * CLASSES)
    chances = Chances(zones[1], Survival((1.0,) * CLASSES), (0.5, *[0.5 / CLASSES] * CLASSES))
    return SpotPolicy(terms(48, 60), [*places, on_demand()], Knowledge(zones, chances))


def test_a_spot_price_near_that_of_on_demand_means_on_demand() -> None:
    places = [spot(price=1_000_000), on_demand(price=1_030_000)]
    policy = cold_policy(terms(48, 60), places)
    done = replay(terms(48, 60), places, rows([True] * 3 + [False, True, True] * 200), 0, policy)
    assert done.spot_hours == 0
    assert done.starts == 1
    assert not done.late


def test_cheap_spot_is_used_and_kept() -> None:
    job, places = terms(48, 60), [spot(), on_demand()]
    done = replay(job, places, rows([True] * 360), 0, cold_policy(job, places))
    assert (done.starts, done.steady_hours) == (1, 0)


def test_an_own_card_that_costs_less_than_spot_is_used_from_the_start() -> None:
    own = RunPlace(name="own", mode="own", price_micros_per_hour=100_000, changeover_hours=0.05)
    policy = cold_policy(terms(48, 60), [spot(), on_demand(), own])
    assert policy.decide(START, (UP, ALWAYS, ALWAYS)).place == 2
    busy = policy.decide(START, (UP, ALWAYS, Sight(False, 1.0)))
    assert busy.place in (None, 0, 1)


def test_while_the_own_card_is_busy_on_demand_has_its_own_price() -> None:
    """Not that of the cheaper own card, which would make spot look dear."""
    own = RunPlace(name="own", mode="own", price_micros_per_hour=100_000, changeover_hours=0.05)
    policy = cold_policy(terms(48, 60), [spot(), on_demand(), own])
    assert policy.decide(START, (Sight(True, 20.0), ALWAYS, Sight(False, 9.0))).place == 0
    on_steady = RunState(left_hours=40, time_left_hours=50, held=1, last=1)
    freed = policy.decide(on_steady, (DOWN, ALWAYS, ALWAYS))
    assert freed.place == 2


def test_a_slow_own_card_is_passed_over_when_only_on_demand_is_fast_enough() -> None:
    own = RunPlace(name="own", mode="own", price_micros_per_hour=1, changeover_hours=2.0)
    policy = cold_policy(terms(10, 14), [spot(), on_demand(), own])
    assert policy.decide(RunState(left_hours=10, time_left_hours=11), (DOWN, ALWAYS, ALWAYS)).place == 1


def test_a_run_waits_while_slack_is_plenty_and_buys_on_demand_when_it_is_not() -> None:
    policy = SpotPolicy(terms(10, 30), [spot(), on_demand()], memoryless(0.1, 1.0))
    early = RunState(left_hours=10, time_left_hours=30)
    late = RunState(left_hours=10, time_left_hours=10.3)
    assert policy.decide(early, (DOWN, ALWAYS)).place is None
    decision = policy.decide(late, (DOWN, ALWAYS))
    assert decision.place == 1
    assert decision.because == "anything else could miss the deadline"


def test_a_long_changeover_keeps_a_run_on_demand_while_spot_is_young() -> None:
    policy = cold_policy(terms(48, 56), [spot(changeover=0.5), on_demand(changeover=0.5)])
    on_steady = RunState(left_hours=40, time_left_hours=42, held=1, last=1)
    assert policy.decide(on_steady, (Sight(True, TICK), ALWAYS)).place == 1
    assert policy.decide(on_steady, (Sight(True, 20.0), ALWAYS)).place == 0


def test_the_zone_that_lasts_longer_is_chosen() -> None:
    assert two_zones(2.0, 0.05, spot("a"), spot("b")).decide(START, (UP, UP, ALWAYS)).place == 1
    assert two_zones(0.05, 2.0, spot("a"), spot("b")).decide(START, (UP, UP, ALWAYS)).place == 0


def test_a_run_stays_in_a_zone_unless_another_is_much_cheaper() -> None:
    held = RunState(left_hours=48, time_left_hours=60, held=0, last=0)
    same = two_zones(2.0, 0.05, spot("a"), spot("b"))
    assert same.decide(held, (UP, UP, ALWAYS)).place == 0, (
        "a move costs a changeover now; a loss may never come"
    )
    dearer = two_zones(0.05, 0.05, spot("a", price=1_500_000), spot("b"))
    assert dearer.decide(held, (UP, UP, ALWAYS)).place == 1
    slightly = two_zones(0.05, 0.05, spot("a", price=1_010_000), spot("b"))
    assert slightly.decide(held, (UP, UP, ALWAYS)).place == 0


def test_a_run_does_not_wait_beside_a_zone_unless_for_a_cheaper_one() -> None:
    """The tables know how long the best place has been there, not that it is a good one that has just come back."""
    lasts = Survival((4.0, 4.0, 2.0, *[0.02] * (CLASSES - 3)))
    zones = lasts, lasts
    chances = Chances(lasts, lasts, (0.9, *[0.1 / CLASSES] * CLASSES))
    known, young = Knowledge(zones, chances), Sight(True, TICK)
    job = terms(4, 80)
    start = RunState(left_hours=4, time_left_hours=80)
    places = [spot("a", changeover=0.5), spot("b", changeover=0.5), on_demand(changeover=0.5)]
    assert SpotPolicy(job, places, known).decide(start, (young, DOWN, ALWAYS)).place == 0
    assert SpotPolicy(job, places, known).decide(start, (young, DOWN, DOWN)).place == 0, (
        "nothing else is there"
    )
    dear = [spot("a", price=3_000_000, changeover=0.5), *places[1:]]
    assert SpotPolicy(job, dear, known).decide(start, (young, DOWN, ALWAYS)).place is None
    (alone, *_, steady) = places
    one = Knowledge(zones[:1], Chances(zones[0], chances.down, (1.0, *[0.0] * CLASSES)))
    assert SpotPolicy(job, [alone, steady], one).decide(start, (young, ALWAYS)).place is None


def test_egress_is_part_of_the_cost_of_a_move() -> None:
    held = RunState(left_hours=48, time_left_hours=60, held=0, last=0)
    far = two_zones(0.05, 0.05, spot("a", price=1_500_000), spot("b", egress=30_000_000))
    assert far.decide(held, (UP, UP, ALWAYS)).place == 0
    lost = RunState(left_hours=48, time_left_hours=60, last=0)
    assert far.decide(lost, (UP, UP, ALWAYS)).place == 0, "the checkpoint is there"


def test_without_a_steady_place_a_run_takes_what_there_is() -> None:
    policy = cold_policy(terms(48, 48), [spot()])
    assert policy.decide(RunState(left_hours=48, time_left_hours=40), (UP,)).place == 0
    assert policy.decide(START, (DOWN,)).place is None


def test_finished_work_needs_no_place() -> None:
    policy = cold_policy(terms(4, 8), [spot(), on_demand()])
    assert policy.decide(RunState(left_hours=0, time_left_hours=1, held=0), (UP, ALWAYS)).place is None


@pytest.mark.parametrize("work", [0, -1, float("nan"), float("inf")])
def test_senseless_terms_are_refused(work: float) -> None:
    with pytest.raises(BadInput, match="positive numbers of hours"):
        cold_policy(terms(work, 60), [spot(), on_demand()])


def test_senseless_places_are_refused() -> None:
    with pytest.raises(BadInput, match="at least one place"):
        cold_policy(terms(48, 60), [])
    with pytest.raises(BadInput, match="must not be negative"):
        cold_policy(terms(48, 60), [spot(changeover=-1), on_demand()])
    with pytest.raises(ValueError, match="one entry for each spot place"):
        SpotPolicy(terms(48, 60), [spot("a"), spot("b"), on_demand()], memoryless(1, 1))
