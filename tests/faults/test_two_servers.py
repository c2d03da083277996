"""Two server processes on one PostgreSQL share the work. If one is killed, at any point, the other takes over."""

import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.faults.servers import HOMES, Site
from tests.faults.test_walk import SCENES, launch
from tests.long import sampled

from teraflock.instance.model import Operation
from teraflock.instance.orders import Order
from teraflock.reconcile.rehearsal import points

INSTANCES = 12
SECONDS_MAX = 120.0
"""Only a bound: how soon one server is consistent again is tested in `test_walk.py`."""
FIRST = Operation.RESIZE
OPERATIONS = [FIRST, *(each for each in Operation if each != FIRST)]
AGAIN = frozenset({Operation.START, Operation.RESTART, Operation.RESIZE_RESTART, Operation.RESTORE_RESTART})
"""They repeat the steps of others: only ends of steps are tried."""


@pytest.fixture
def site(postgres_address: str) -> Iterator[Site]:
    with TemporaryDirectory(prefix="tera-shared-", dir=HOMES) as folder:
        site = Site(Path(folder), postgres_address)
        yield site
        site.close()


@pytest.mark.parametrize("operation", sampled(OPERATIONS, every=20, because="every point"))
def test_a_survivor_finishes_what_the_other_began(site: Site, operation: Operation) -> None:
    """One server dies at each point of the operation. The other finishes it, and is killed before the next one."""
    set_up, wish, turn_back = SCENES[operation]
    for number, point in enumerate(points(operation)):
        if operation in AGAIN and point.endswith("before"):
            continue
        set_up(site)
        if ":undo:" in point:
            assert turn_back is not None
            site.trouble.faults(turn_back)
        if operation == Operation.LAUNCH:
            launch(site, f"key-{number}")
        else:
            wish(site)
        assert site.death(site.serve(dies_at=point)) == -signal.SIGKILL, f"{point} was never reached"
        site.serve()
        site.seconds_to_rest(SECONDS_MAX)
        empty(site)
        site.kill()


def test_both_servers_work_and_either_may_be_killed(site: Site) -> None:
    first, second = site.serve(), site.serve()
    site.ask("launch", Order(name="one", instances=INSTANCES))
    first.kill()
    site.seconds_to_rest(SECONDS_MAX)
    third = site.serve()
    site.ask("launch", Order(name="two", instances=INSTANCES))
    second.kill()
    site.seconds_to_rest(SECONDS_MAX)
    assert {view.instance.phase for view in site.service.page(site.tenant.project.id, limit=50)} == {
        "running"
    }
    site.serve()
    third.kill()
    empty(site)


def empty(site: Site) -> None:
    for view in site.service.page(site.tenant.project.id, limit=50):
        site.ask("delete", view.instance.id)
    site.seconds_to_rest(SECONDS_MAX)
    assert list(site.engine.sightings()) == []
    tenant, images = site.tenant, site.cloud.services.nouns.images
    for image in images.page(tenant.project.id, limit=9):
        if image.name == "mine":
            images.delete(tenant.actor, tenant.project, image.name)
