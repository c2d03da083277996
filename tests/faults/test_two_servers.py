"""Two server processes on one PostgreSQL share the work. If one is killed, the other takes over."""

import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.faults.servers import HOMES, Site
from tests.long import sampled

from teraflock.instance.orders import Order

POINTS = ["launch.prepare:before", "launch.create:after", "launch.ready:after"]
INSTANCES = 12


@pytest.fixture
def site(postgres_address: str) -> Iterator[Site]:
    with TemporaryDirectory(prefix="tera-shared-", dir=HOMES) as folder:
        site = Site(Path(folder), postgres_address)
        yield site
        site.close()


@pytest.mark.parametrize("point", sampled(POINTS, every=3, because="waits until a lease ends"))
def test_a_survivor_finishes_what_the_other_began(site: Site, point: str) -> None:
    site.ask("launch", Order(name="one", instances=INSTANCES))
    assert site.death(site.serve(dies_at=point)) == -signal.SIGKILL
    site.serve()
    site.seconds_to_rest()
    site.ask("launch", Order(name="two", instances=INSTANCES))
    site.serve()
    site.seconds_to_rest()
    for view in site.service.page(site.tenant.project.id, limit=50):
        assert view.instance.phase == "running"
        site.ask("delete", view.instance.id)
    site.seconds_to_rest()
    assert list(site.engine.sightings()) == []
