"""Small runs for tests: one or more spot zones beside on-demand."""

from collections.abc import Sequence

from teraflock.run.learn import Chances, Knowledge, learn
from teraflock.run.model import RunPlace, RunTerms, Sight, sights_of
from teraflock.run.policy import SpotPolicy
from teraflock.run.survival import CLASSES, Survival

TICK = 1 / 6
SPOT, ON_DEMAND = 1_000_000, 3_145_000
ALWAYS = Sight(True, float("inf"))


def terms(work: float, deadline: float, tick: float = TICK, wait: float = 0.0) -> RunTerms:
    return RunTerms(work_hours=work, deadline_hours=deadline, tick_hours=tick, steady_wait_hours=wait)


def spot(name: str = "a", price: int = SPOT, changeover: float = 0.2, egress: int = 0) -> RunPlace:
    return RunPlace(
        name=name,
        mode="spot",
        price_micros_per_hour=price,
        changeover_hours=changeover,
        egress_micros=egress,
    )


def on_demand(price: int = ON_DEMAND, changeover: float = 0.2) -> RunPlace:
    return RunPlace(
        name="on-demand", mode="on-demand", price_micros_per_hour=price, changeover_hours=changeover
    )


def memoryless(end_up: float, end_down: float) -> Knowledge:
    """One zone whose periods end at the same rate at any age, per hour."""
    up, down = Survival((end_up,) * CLASSES), Survival((end_down,) * CLASSES)
    return Knowledge((up,), Chances(up, down, (1.0, *[0.0] * CLASSES)))


def cold_policy(job: RunTerms, places: Sequence[RunPlace]) -> SpotPolicy:
    """A policy without history."""
    zones = sum(not place.steady for place in places)
    return SpotPolicy(job, places, learn([()] * zones, job.tick_hours))


def rows(*series: Sequence[bool], tick: float = TICK) -> list[tuple[Sight, ...]]:
    """What is seen at each tick of some zones, and of on-demand, which is always there."""
    return [(*row, ALWAYS) for row in zip(*(sights_of(each, tick) for each in series), strict=True)]
