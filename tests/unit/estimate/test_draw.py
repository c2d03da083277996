"""What the estimate is judged by is drawn, not chosen: the same for a seed, and nothing that was known before."""

import random

import pytest
from lab.draw import _key, anywhere, drawn, known_keys, usual
from lab.jobs import workload_of

from teraflock.workload.model import checked
from teraflock.workload.zoo import with_sizes

COUNT = 5


@pytest.mark.parametrize("draw", [anywhere, usual])
def test_a_seed_draws_the_same_again_and_nothing_known(draw: object) -> None:
    first = list(drawn(random.Random(3), COUNT, set(), draw))  # type: ignore[arg-type]
    again = list(drawn(random.Random(3), COUNT, set(), draw))  # type: ignore[arg-type]
    others = list(drawn(random.Random(3), COUNT, {_key(each) for each in first}, draw))  # type: ignore[arg-type]
    assert first == again
    assert len({each["model"] for each in first}) == COUNT
    assert not {_key(each) for each in first} & {_key(each) for each in others}
    for each in first:
        with_sizes(checked(workload_of(each)))  # a workload that the estimate takes


def test_people_take_powers_of_two_and_images_as_the_model_has_them() -> None:
    for job in drawn(random.Random(4), COUNT, set(), usual):
        assert job["batch"].bit_count() == 1
        assert job["px"] is None
        assert job["optimizer"] != "adafactor"


def test_what_was_drawn_or_measured_before_is_known() -> None:
    assert len(known_keys()) > 1000
