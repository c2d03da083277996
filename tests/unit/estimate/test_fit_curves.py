"""Which measured operations are kept beside a curve: as few as say what all say."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.fit_curves import NEAR_ENOUGH, TOLD, _telling

from teraflock.estimate.speed import DOUBT, nearby

POINTS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.floats(-1, 1)), min_size=1, max_size=60,
    unique_by=lambda each: each[:2],
)  # fmt: skip


@settings(max_examples=50)
@given(points=POINTS)
def test_what_was_left_out_is_told_by_what_was_kept_before_it(points: list[tuple[int, int, float]]) -> None:
    spots = np.array([[x / 100, y / 100] for x, y, _ in points])
    values = np.array([value for *_, value in points])
    kept = set(_telling(spots, values))
    order = np.random.default_rng(0).permutation(len(spots))
    before: list[list[float]] = []
    for at in order:
        told, nearness = nearby((*spots[at],), sorted(before))
        is_alone = nearness < NEAR_ENOUGH / (NEAR_ENOUGH + DOUBT)
        assert (at in kept) == (is_alone or abs(told - values[at]) > TOLD)
        if at in kept:
            before.append([*spots[at], values[at]])


def test_of_operations_on_one_spot_that_agree_one_is_kept() -> None:
    assert len(_telling(np.full((50, 3), 0.4), np.full(50, 0.3))) == 1
