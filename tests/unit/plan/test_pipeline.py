"""A machine with few vCPUs gets a warning, and no other."""

from random import Random

from msgspec.structs import replace
from tests.unit.plan.random_shapes import random_shapes

from teraflock.plan.model import Choice, Cost, Hours
from teraflock.plan.pipeline import pipeline_warning


def choice(vcpus: float | None, hours: float, instances: int = 1) -> Choice:
    short = replace(random_shapes(Random(1), 1)[0], vcpus=vcpus)
    return Choice(
        shape=short, instances=instances, hours=Hours(hours, hours, hours), cost=Cost(1, 1, 1, "USD"),
        parts=(), interruptions=0.0,
    )  # fmt: skip


def test_the_warning_names_the_first_machine_that_is_too_slow() -> None:
    enough, short = choice(20, 1.0), choice(4, 1.0)
    warning = pipeline_warning([enough, short], lambda _: 3600 * 1000.0)
    assert warning.startswith(
        "1 of 2 choices may wait for their data: number 2 trains on 1,000 images per second"
    )
    assert "4 vCPUs decode about 400" in warning


def test_machines_without_known_vcpus_or_samples_get_no_warning() -> None:
    assert pipeline_warning([choice(None, 1.0)], lambda _: 1e12) == ""
    assert pipeline_warning([choice(1, 1.0)], lambda _: None) == ""
    assert pipeline_warning([choice(1, float("inf"))], lambda _: 1e12) == ""


def test_several_machines_decode_together() -> None:
    assert pipeline_warning([choice(4, 1.0, instances=4)], lambda _: 3600 * 1500.0) == ""
