"""Changes become intervals, whatever the clocks did."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.size import Size
from teraflock.instance.states import BILLABLE, Phase
from teraflock.meter.model import Change, Holding, Interval, Meter
from teraflock.meter.rules import charged, latest, recut, take
from teraflock.tenant.model import ProjectId

R, C, S, T, D, U, A = (
    Phase.RUNNING, Phase.CHANGING, Phase.STOPPED, Phase.STOPPING, Phase.DELETING, Phase.STARTING, Phase.AWAY,
)  # fmt: skip


def change(
    sequence: int, at: int, phase: Phase, *, gpus: int = 1, asked: int | None = None, lost: int | None = None,
) -> Change:  # fmt: skip
    return Change(
        instance_id="ins", project_id=ProjectId("prj"), sequence=sequence, generation=0, at_us=at, phase=phase,
        held=Holding(size=Size(gpu="V100-SXM2", gpus=gpus, vcpus=4, ram_bytes=8, disk_bytes=16)), asked_at_us=asked,
        last_seen_us=lost,
    )  # fmt: skip


def intervals(*changes: Change) -> tuple[Interval, ...]:
    """As the meter makes them, each in its last revision, the empty ones left out."""
    meter, made = Meter(instance_id="ins", project_id=ProjectId("prj")), list[Interval]()
    for each in changes:
        before, step = meter, take(meter, each)
        meter = step.meter
        if step.cut_us is not None:
            assert before.open is not None
            run = [interval for interval in made if interval.sequence >= (before.open.run_sequence or 0)]
            made += recut(latest(run), step.cut_us, operator_fault=each.last_seen_us is not None)
        if step.closed:
            made.append(step.closed)
    return tuple(each for each in latest(made) if each.until_us > each.from_us)


def spans(*changes: Change) -> list[tuple[int, int, int]]:
    return [(each.from_us, each.until_us, each.held.size.gpus) for each in intervals(*changes)]


def test_a_run_is_charged_while_it_runs() -> None:
    assert spans(
        change(1, 10, U), change(2, 20, R), change(3, 50, T), change(4, 60, S), change(5, 90, D)
    ) == [
        (20, 50, 1),
        (60, 90, 0),
    ]


def test_a_launch_that_fails_has_no_interval() -> None:
    assert spans(change(1, 10, Phase.QUEUED), change(2, 20, U), change(3, 50, Phase.FAILED)) == []


def test_a_restart_cuts_nothing_and_a_resize_does() -> None:
    assert spans(change(1, 0, R), change(2, 10, C), change(3, 20, R), change(4, 30, T)) == [(0, 30, 1)]
    assert spans(change(1, 0, R), change(2, 10, R, gpus=4), change(3, 30, T)) == [(0, 10, 1), (10, 30, 4)]


def test_a_stop_that_hangs_counts_from_when_it_was_asked_for() -> None:
    assert spans(change(1, 0, R), change(2, 90, T, asked=40)) == [(0, 40, 1)]


def test_it_reaches_back_behind_a_resize_that_came_between() -> None:
    found = intervals(change(1, 0, R), change(2, 50, R, gpus=4), change(3, 90, T, asked=40))
    assert [(each.from_us, each.until_us, each.ends_run, each.revision) for each in found] == [
        (0, 40, True, 1)
    ]


def test_it_reaches_no_further_than_its_run() -> None:
    assert spans(
        change(1, 0, R), change(2, 50, T), change(3, 60, S), change(4, 70, U), change(5, 80, R),
        change(6, 99, T, asked=5),
    ) == [(0, 50, 1), (60, 70, 0)]  # fmt: skip


def test_an_old_wish_is_not_taken_for_one_to_stop() -> None:
    """Events bear the time of the last wish, which for a reboot of the host is that of the launch."""
    assert spans(
        change(1, 10, R, asked=0), change(2, 90, U, asked=0), change(3, 95, R, asked=0), change(4, 99, T)
    ) == [
        (10, 90, 1),
        (95, 99, 1),
    ]


def test_a_lost_host_counts_until_it_was_last_seen_and_is_nobody_elses_fault() -> None:
    (found,) = intervals(change(1, 0, R), change(2, 90, A, lost=30))
    assert (found.until_us, found.ends_run, found.operator_fault) == (30, True, True)


def test_a_clock_that_steps_back_stands_still() -> None:
    assert spans(
        change(1, 100, R), change(2, 40, R, gpus=2), change(3, 70, R, gpus=3), change(4, 150, T)
    ) == [(100, 150, 3)]


PHASES = st.sampled_from([R, R, R, C, S, T, D, U, A])


@st.composite
def lives(draw: st.DrawFn) -> list[Change]:
    """Any phases at any times, forwards and back, with wishes and losses at any time."""
    made = []
    for sequence in range(1, draw(st.integers(2, 12))):
        at = draw(st.integers(0, 100))
        asked = draw(st.one_of(st.none(), st.integers(0, 100)))
        lost = draw(st.one_of(st.none(), st.none(), st.integers(0, 100)))
        made.append(change(sequence, at, draw(PHASES), gpus=draw(st.integers(1, 3)), asked=asked, lost=lost))
    return made


@given(life=lives())
def test_intervals_follow_each_other_without_overlap(life: list[Change]) -> None:
    found = intervals(*life)
    for before, after in pairwise(found):
        assert before.until_us <= after.from_us
        if before.run_us is not None and before.run_us == after.run_us:
            assert before.until_us == after.from_us, "a run has no gap"
    assert all(each.from_us < each.until_us <= 100 for each in found)


@given(life=lives())
def test_what_is_not_billable_is_never_charged_for_a_card(life: list[Change]) -> None:
    by_sequence = {each.sequence: each for each in life}
    for each in intervals(*life):
        opener = by_sequence[each.sequence]
        assert each.held == charged(opener)
        assert (each.run_us is not None) == (opener.phase in BILLABLE)
        ends = (opener.last_seen_us, opener.asked_at_us) if opener.phase not in BILLABLE else ()
        assert each.from_us >= min((opener.at_us, *(end for end in ends if end is not None)))


@given(life=lives())
def test_each_run_ends_at_most_once_and_at_its_end(life: list[Change]) -> None:
    by_run: dict[int, list[Interval]] = {}
    for each in intervals(*life):
        if each.run_us is not None:
            by_run.setdefault(each.run_us, []).append(each)
    for run in by_run.values():
        enders = [each for each in run if each.ends_run]
        assert len(enders) <= len({each.run_us for each in run})
        for each in enders:
            assert each.until_us == max(other.until_us for other in run if other.sequence <= each.sequence)
