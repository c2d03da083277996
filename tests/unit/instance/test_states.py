"""The table of phases, written a second time: a change that is allowed by mistake fails here."""

from itertools import product
from typing import get_args

import pytest
from tests.unit.instance.samples import standing

from teraflock.bill.verify.timeline import RUNS
from teraflock.instance.rules import COURSES, IllegalMove, moved
from teraflock.instance.states import BILLABLE, MOVES, Phase
from teraflock.wire.instance import PhaseWord

ALLOWED = """
queued    > starting failed deleting
starting  > running stopped failed deleting
running   > changing starting away stopping failed deleting
changing  > running away stopped deleting
away      > running changing starting stopping stopped failed deleting
stopping  > stopped failed deleting
stopped   > starting stopping failed deleting
failed    > deleting
deleting  > gone
gone      >
"""


@pytest.mark.parametrize(("before", "after"), list(product(Phase, Phase)))
def test_only_listed_changes_of_phase_are_allowed(before: Phase, after: Phase) -> None:
    table = {words[0]: words[2:] for line in ALLOWED.strip().splitlines() if (words := line.split())}
    instance = standing(before)
    if after == before or after in table[before]:
        assert moved(instance, after).phase == after
    else:
        with pytest.raises(IllegalMove):
            moved(instance, after)


def test_every_phase_can_reach_gone() -> None:
    for phase in Phase:
        reached, todo = {phase}, [phase]
        while todo:
            for following in MOVES[todo.pop()] - reached:
                reached.add(following)
                todo.append(following)
        assert Phase.GONE in reached


def test_phases_of_every_operation_are_allowed() -> None:
    for course in COURSES.values():
        if course.during:
            ends = {course.done, course.undone} - {None}
            assert ends <= {*MOVES[course.during], course.during}


def test_api_has_every_phase() -> None:
    assert sorted(get_args(PhaseWord)) == sorted(Phase)


def test_bill_verification_knows_the_charged_phases() -> None:
    """`bill/verify` has its own list on purpose. A new phase must be in both or in neither."""
    assert sorted(RUNS) == sorted(BILLABLE)
