"""The rules of the simulator."""

from collections.abc import Sequence

import pytest
from tests.unit.run.worlds import ON_DEMAND, SPOT, on_demand, rows, spot, terms

from teraflock.run.model import NextPlace, RunPlace, RunState, Sight
from teraflock.run.simulate import Replay, replay

JOB = terms(1.0, 3.0, tick=0.25)


class Script:
    """Follows a list of places."""

    def __init__(self, *places: int | None) -> None:
        self._places = list(places)

    def decide(self, state: RunState, sights: Sequence[Sight]) -> NextPlace:
        return NextPlace(self._places.pop(0) if self._places else None, "script")


def run(up: str, *script: int | None, changeover: float = 0.1, places: Sequence[RunPlace] = ()) -> Replay:
    chosen = places or [spot(changeover=changeover), on_demand(changeover=changeover)]
    series = [[each == "1" for each in up.ljust(12, "0")]] * (len(chosen) - 1)
    return replay(JOB, chosen, rows(*series, tick=0.25), 0, Script(*script))


def test_every_start_burns_its_changeover_and_a_tick_is_paid_in_full() -> None:
    done = run("111111", 0, 0, 0, 0, 0)
    assert (done.starts, done.spot_hours, done.late) == (1, 1.25, False)
    assert done.cost_micros == pytest.approx(1.25 * SPOT)


def test_a_lost_place_loses_the_rest_of_its_changeover() -> None:
    """Four ticks of changeover: three are served, then all four again, then four of work."""
    done = run("111011111111", 0, 0, 0, None, *[0] * 8, changeover=1.0)
    assert (done.starts, done.late) == (2, False)
    assert run("11101111111", 0, 0, 0, None, *[0] * 7, changeover=1.0).late


def test_a_move_between_places_pays_egress_and_a_changeover() -> None:
    places = [spot("a"), spot("b", egress=7), on_demand()]
    done = run("1" * 12, 0, 0, 1, 1, 1, 1, 1, 1, places=places)
    assert (done.starts, done.late) == (2, False)
    assert done.cost_micros == pytest.approx(done.spot_hours * SPOT + 7)


def test_on_demand_is_never_lost() -> None:
    done = run("0", 1, 1, 1, 1, 1)
    assert done.cost_micros == pytest.approx(1.25 * ON_DEMAND)
    assert done.steady_hours == 1.25


def test_a_run_with_work_left_at_the_deadline_is_late() -> None:
    assert run("0").late
    assert run("0", *[None] * 7, *[1] * 5).late is False
    assert run("0", *[None] * 8, *[1] * 4).late


def test_a_deadline_within_a_tick_counts_to_the_minute() -> None:
    places = [spot(changeover=0.1), on_demand(changeover=0.1)]
    just = terms(1.0, 1.1, tick=0.25)
    too_short = terms(1.0, 1.05, tick=0.25)
    seen = rows([False] * 12, tick=0.25)
    assert not replay(just, places, seen, 0, Script(*[1] * 5)).late
    assert replay(too_short, places, seen, 0, Script(*[1] * 5)).late


def test_a_place_that_is_not_available_cannot_be_chosen() -> None:
    with pytest.raises(ValueError, match="chose a, which is not available"):
        run("0", 0)
