"""Concurrent launches compete for the rest of a budget, on both databases: exactly one succeeds."""

import threading
from random import Random

import pytest
from tests.simulation.cloud import Cloud
from tests.simulation.walk import begin

from teraflock.bill.budget.admission import BudgetReached, admission
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.service import InstanceService
from teraflock.storage.database import Database

RACERS = 4
SHAPE = ShapeWish(vcpus=2, ram_bytes=3 << 30)


def racers(cloud: Cloud, database: Database, project: str, name: str) -> list[str]:
    """Launch concurrently, each as a separate server would. Return the result of each."""
    start, ends = threading.Barrier(RACERS), ["" for _ in range(RACERS)]

    def race(number: int) -> None:
        service = InstanceService(
            database,
            cloud.clock,
            cloud.engines,
            random_bytes=Random(f"{name} {number}").randbytes,
            admits=admission(cloud.clock),
        )
        start.wait()
        try:
            service.launch(
                cloud.actors[0], cloud.projects[project], Order(name=f"{name}-{number}", shape=SHAPE)
            )
            ends[number] = "launched"
        except BudgetReached:
            ends[number] = "refused"

    threads = [threading.Thread(target=race, args=(number,)) for number in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def with_one_running(database: Database, project: str) -> tuple[Cloud, int]:
    """Return an installation with one instance running for longer than the minimum, and its cost per minute."""
    cloud = Cloud(database)
    begin(cloud)
    cloud.launch(project, SHAPE, 1, "on-demand", "a", 0)
    for _ in range(3):
        cloud.wait(1)
        cloud.turn()
    cloud.wait(120)
    minute = int(cloud.oracle.rate(project, cloud.now_us) * 60 * 10**6)
    assert minute > 0
    return cloud, minute


def last_of_a_budget(cloud: Cloud, project: str, micros: int) -> None:
    cloud.set_budget(project, cloud.spent(project) + micros, True, 0)


@pytest.mark.parametrize("project", ["default", "cny"])
def test_one_concurrent_launch_gets_the_rest_of_a_budget(database: Database, project: str) -> None:
    cloud, minute = with_one_running(database, project)
    last_of_a_budget(cloud, project, 2 * minute + minute // 2)
    assert sorted(racers(cloud, database, project, "first")) == ["launched"] + ["refused"] * (RACERS - 1)
    last_of_a_budget(cloud, project, 2 * minute + minute // 2)
    assert racers(cloud, database, project, "second") == ["refused"] * RACERS, (
        "a launched instance counts before it runs"
    )
