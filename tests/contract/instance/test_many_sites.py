"""Several sites with own hosts: each works independently of the others."""

from datetime import UTC, datetime

import pytest
from tests.faults.installation import BOOT_SECONDS, Installation

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.model import Guest
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.model import Instance, RestartPolicy
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.site.model import SiteRecord
from teraflock.instance.states import Phase
from teraflock.storage.database import Database

A100 = ShapeWish(gpu="A100-80")


class Two:
    """An installation, and a second site with another kind of host, which is added while it runs."""

    def __init__(self, database: Database) -> None:
        self.installation = Installation(
            database, MemoryWorld(), FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
        )
        self.world = MemoryWorld()
        self.trouble = Trouble(self.world)
        self.second = SimulatedEngine(
            self.world,
            self.installation.clock,
            fleet("1x2xA100-80"),
            site="second",
            mark=self.installation.tenant.mark,
            boot_seconds=BOOT_SECONDS,
        )

    def add(self) -> None:
        self.installation.engines.put(self.second, SiteRecord(name="second", kind="simulated"))

    def launch(self, order: Order) -> Instance:
        tenant = self.installation.tenant
        return self.installation.service.launch(tenant.actor, tenant.project, order)[0]

    def phase(self, instance: Instance) -> Phase:
        return self.installation.service.view(instance.project_id, instance.id).instance.phase


@pytest.fixture
def two(database: Database) -> Two:
    return Two(database)


def guests(world: MemoryWorld) -> list[str]:
    with world.read() as turn:
        return [each.key for each in turn.every(Guest)]


def test_added_site_gets_images_and_instances(two: Two) -> None:
    two.add()
    two.installation.settle()
    assert len(two.second.images()) == 1, "the image was built before the site was added"
    made = two.launch(Order(name="one", shape=A100))
    assert made.site == "second"
    two.installation.settle()
    assert (two.phase(made), guests(two.world)) == (Phase.RUNNING, [made.id])


def test_site_is_chosen_by_name(two: Two) -> None:
    two.add()
    two.installation.settle()
    assert two.launch(Order(site="second")).site == "second"
    assert two.launch(Order(site="simulated")).site == "simulated"
    with pytest.raises(BadInput, match="nowhere"):
        two.launch(Order(site="nowhere"))
    two.installation.settle()
    assert len(guests(two.world)) == 1


def test_site_that_is_down_does_not_affect_others(two: Two) -> None:
    two.add()
    two.installation.settle()
    away = two.launch(Order(name="away", shape=A100))
    two.installation.settle()
    two.trouble.engine_goes_down()
    made = two.launch(Order(name="here"))
    two.installation.images.build(
        two.installation.tenant.actor, two.installation.tenant.project, "tools", "jupyter"
    )
    for _ in range(10):
        worker = two.installation.workers[0]
        worker.beat()
        worker.look()
        worker.turn()
        two.installation.wait(5)
    assert (two.phase(made), two.phase(away)) == (Phase.RUNNING, Phase.AWAY)
    tools = two.launch(Order(name="tool", image="tools", site="simulated"))
    two.trouble.engine_comes_back()
    two.installation.settle()
    assert (two.phase(away), two.phase(tools)) == (Phase.RUNNING, Phase.RUNNING)
    assert len(two.second.images()) == 2, "it got the image that was built while it was down"


def test_image_made_on_a_site_is_launched_only_there(two: Two) -> None:
    two.add()
    two.installation.settle()
    two.launch(Order(name="one", shape=A100))
    two.installation.settle()
    tenant = two.installation.tenant
    two.installation.images.from_instance(tenant.actor, tenant.project, "mine", "one")
    two.installation.settle()
    assert two.launch(Order(name="two", image="mine")).site == "second"
    with pytest.raises(BadInput, match="was made on `second`"):
        two.launch(Order(image="mine", site="simulated"))


@pytest.mark.parametrize("policy", RestartPolicy)
def test_instance_of_a_lost_site_is_created_elsewhere_if_allowed(two: Two, policy: RestartPolicy) -> None:
    two.add()
    two.installation.settle()
    made = two.launch(Order(name="one", site="second", restart_policy=policy))
    two.installation.settle()
    two.trouble.engine_goes_down()
    look(two, minutes=4)
    assert two.phase(made) == Phase.AWAY
    look(two, minutes=4)
    moves = policy == RestartPolicy.ELSEWHERE
    assert two.phase(made) == (Phase.RUNNING if moves else Phase.AWAY)
    two.trouble.engine_comes_back()
    two.installation.settle()
    assert two.phase(made) == Phase.RUNNING
    view = two.installation.service.view(made.project_id, made.id)
    assert (view.instance.site, bool(view.instance.notice)) == (
        ("simulated", True) if moves else ("second", False)
    )
    assert guests(two.world) == ([] if moves else [made.id]), "the old copy is removed when its site is back"
    with two.installation.database.read() as tx:
        held = tx.all("SELECT DISTINCT host_id FROM host_port WHERE instance_id = :id", id=made.id)
    assert [row[0] for row in held] == [view.instance.host_id]


def look(two: Two, *, minutes: int) -> None:
    for _ in range(minutes * 6):
        worker = two.installation.workers[0]
        worker.beat()
        worker.look()
        worker.turn()
        two.installation.wait(10)


def test_instance_of_a_removed_site_waits(two: Two) -> None:
    two.add()
    two.installation.settle()
    made = two.launch(Order(name="one", shape=A100))
    two.installation.settle()
    two.installation.engines.drop("second")
    tenant = two.installation.tenant
    two.installation.service.delete(tenant.actor, tenant.project, "one")
    two.installation.workers[0].turn()
    assert two.phase(made) == Phase.DELETING
    two.add()
    two.installation.settle()
    assert (two.phase(made), guests(two.world)) == (Phase.GONE, [])
