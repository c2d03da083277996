"""The losses of a run for its chart: bounded, ordered, with the newest point last."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from teraflock.run.losses import POINTS_MAX, Losses, with_loss


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(-10, 10)), max_size=400))
def test_any_reports_give_few_points_in_order_that_were_reported(reports: list[tuple[int, float]]) -> None:
    losses: Losses = ()
    for step, loss in reports:
        losses = with_loss(losses, step, loss)
        assert losses[-1] == (step, loss)
        assert len(losses) <= POINTS_MAX
        assert [step for step, _ in losses] == sorted({step for step, _ in losses})
    assert set(losses) <= set(reports)


def test_a_long_run_keeps_points_over_its_whole_length() -> None:
    losses: Losses = ()
    for step in range(50_000):
        losses = with_loss(losses, step, 1 / (step + 1))
    steps = [step for step, _ in losses]
    gaps = [after - before for before, after in pairwise(steps)][:-1]
    assert (steps[0], steps[-1]) == (0, 49_999)
    assert len(steps) >= POINTS_MAX // 3
    assert max(gaps) <= 2 * min(gaps)


def test_a_run_that_goes_back_to_a_checkpoint_replaces_later_points() -> None:
    losses = with_loss(with_loss(with_loss((), 1, 3.0), 2, 2.5), 3, 2.0)
    assert with_loss(losses, 2, 2.4) == ((1, 3.0), (2, 2.4))
    assert with_loss(losses, 4, None) == losses
