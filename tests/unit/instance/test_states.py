"""The table of phases, written a second time: a move that is allowed by mistake fails here."""

from itertools import product
from typing import get_args

import pytest
from tests.unit.instance.samples import standing

from teraflock.bill.verify.timeline import RUNS
from teraflock.instance.rules import COURSES, IllegalMove, moved
from teraflock.instance.states import BILLABLE, LIVE, MOVES, ON_ENGINE, Phase
from teraflock.wire.instance import PhaseWord

ALLOWED = """
queued    > starting deleting
starting  > running stopped failed deleting
running   > changing starting away stopping failed deleting
changing  > running away stopped deleting
away      > running changing starting stopping stopped failed deleting
stopping  > stopped deleting
stopped   > starting stopping failed deleting
failed    > deleting
deleting  > gone
gone      >
"""


@pytest.mark.parametrize(("before", "after"), list(product(Phase, Phase)))
def test_every_pair_of_phases(before: Phase, after: Phase) -> None:
    table = {words[0]: words[2:] for line in ALLOWED.strip().splitlines() if (words := line.split())}
    instance = standing(before)
    if after == before or after in table[before]:
        assert moved(instance, after).phase == after
    else:
        with pytest.raises(IllegalMove):
            moved(instance, after)


def test_every_phase_leads_to_the_end() -> None:
    for phase in Phase:
        reached, todo = {phase}, [phase]
        while todo:
            for following in MOVES[todo.pop()] - reached:
                reached.add(following)
                todo.append(following)
        assert Phase.GONE in reached


def test_sets_of_phases_agree() -> None:
    assert BILLABLE <= ON_ENGINE
    assert set(Phase) - LIVE == {Phase.FAILED, Phase.GONE}
    assert set(Phase) - ON_ENGINE == {Phase.QUEUED, Phase.FAILED, Phase.GONE}


def test_every_operation_has_a_course_its_phases_allow() -> None:
    for course in COURSES.values():
        if course.during:
            ends = {course.done, course.undone} - {None}
            assert ends <= {*MOVES[course.during], course.during}


def test_the_api_has_a_word_for_every_phase() -> None:
    assert sorted(get_args(PhaseWord)) == sorted(Phase)


def test_the_books_are_verified_for_the_phases_that_are_charged() -> None:
    """`bill/verify` has its own list on purpose; a new phase must be in both or in none."""
    assert sorted(RUNS) == sorted(BILLABLE)
