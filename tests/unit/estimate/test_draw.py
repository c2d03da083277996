"""Test workloads are drawn at random: a seed repeats its draw, and known jobs never come again."""

import random

import pytest
from lab.draw import _key, anywhere, drawn, known_keys, usual
from lab.jobs import workload_of

from teraflock.workload.model import checked
from teraflock.workload.zoo import with_sizes

COUNT = 5


@pytest.mark.parametrize("draw", [anywhere, usual])
def test_a_seed_repeats_its_draw_and_skips_known_jobs(draw: object) -> None:
    first = list(drawn(random.Random(3), COUNT, set(), draw))  # type: ignore[arg-type]
    again = list(drawn(random.Random(3), COUNT, set(), draw))  # type: ignore[arg-type]
    others = list(drawn(random.Random(3), COUNT, {_key(each) for each in first}, draw))  # type: ignore[arg-type]
    assert first == again
    assert len({each["model"] for each in first}) == COUNT
    assert not {_key(each) for each in first} & {_key(each) for each in others}
    for each in first:
        with_sizes(checked(workload_of(each)))  # raises if the estimate does not support the workload


def test_usual_draws_use_powers_of_two_and_default_image_sizes() -> None:
    for job in drawn(random.Random(4), COUNT, set(), usual):
        assert job["batch"].bit_count() == 1
        assert job["px"] is None
        assert job["optimizer"] != "adafactor"


def test_known_jobs_include_drawn_and_measured_ones() -> None:
    assert len(known_keys()) > 1000
