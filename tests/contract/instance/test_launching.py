"""What a launch refuses, and with which sentence. A launch claims everything or nothing. On both databases."""

import re
from datetime import UTC, datetime
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.installation import Installation

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Conflict, NotFound, QuotaReached
from teraflock.base.quantities import GIB
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet import store as fleet
from teraflock.fleet.placement import Policy
from teraflock.instance.claims import NoCapacity
from teraflock.instance.model import Access, Instance
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.storage.open import open_database
from teraflock.tenant.model import ProjectId, Quota
from teraflock.tenant.project.store import remove_project, set_quota

CARD = ShapeWish(gpu="V100")


def launched(installation: Installation, order: Order) -> tuple[Instance, ...]:
    return installation.service.launch(installation.tenant.actor, installation.tenant.project, order)


def held(installation: Installation) -> tuple[object, ...]:
    """Everything that is claimed."""
    with installation.database.read() as tx:
        return tuple(
            sorted(tx.all("SELECT host_id, slot, instance_id FROM host_gpu WHERE instance_id IS NOT NULL"))
        ) + (tuple(sorted(tx.all("SELECT host_id, port FROM host_port"))))


def test_every_card_is_claimed_once(installation: Installation) -> None:
    made = launched(installation, Order(name="bird", shape=CARD, instances=4))
    assert [instance.name for instance in made] == ["bird-1", "bird-2", "bird-3", "bird-4"]
    slots = [(instance.host_id, card.slot) for instance in made for card in instance.held.gpus]
    assert len(set(slots)) == 4
    before = held(installation)
    with pytest.raises(NoCapacity, match="no room now for 1× V100-SXM2") as caught:
        launched(installation, Order(shape=CARD))
    assert "`cpu-1`" in caught.value.hint
    assert held(installation) == before


def test_hint_offers_a_smaller_size_that_fits(installation: Installation) -> None:
    """An instance without a card holds most of the memory of a host with cards."""
    with installation.database.read() as tx:
        rooms = sorted(fleet.rooms(tx, Policy()), key=lambda room: room.gpus_total)
    for room in rooms:
        left = 5 * GIB if room.gpus_total else 0
        launched(
            installation, Order(shape=ShapeWish(vcpus=2, ram_bytes=room.ram_bytes - left), host=room.name)
        )
    with pytest.raises(NoCapacity) as caught:
        launched(installation, Order(shape=ShapeWish(gpu="V100", ram_bytes=8 * GIB)))
    words = re.search(r"with a smaller size: .*\(`--vcpus (\d+) --ram (\d+)`", caught.value.hint)
    assert words, caught.value.hint
    vcpus, ram_gb = (int(word) for word in words.groups())
    assert ram_gb == 5
    launched(installation, Order(shape=ShapeWish(gpu="V100", vcpus=vcpus, ram_bytes=ram_gb * GIB)))


def test_launch_without_room_claims_nothing(installation: Installation) -> None:
    with pytest.raises(NoCapacity, match="no room now for 5 ×"):
        launched(installation, Order(shape=CARD, instances=5))
    assert held(installation) == ()
    assert installation.service.page(installation.tenant.project.id, limit=10) == ()


def test_size_above_every_host_names_the_largest_possible(installation: Installation) -> None:
    with pytest.raises(BadInput, match="larger than any host") as caught:
        launched(installation, Order(shape=ShapeWish(ram_bytes=10_000 * GIB)))
    assert "The largest possible size: " in caught.value.hint


def test_draining_host_gets_no_new_instance(installation: Installation) -> None:
    with installation.database.read() as tx:
        hosts = [host.id for host in fleet.hosts(tx, limit=10) if host.gpus]
    for id in hosts:
        installation.database.write(partial(fleet.set_drained, id=id, drained=True))
    with pytest.raises(NoCapacity):
        launched(installation, Order(shape=CARD))
    assert launched(installation, Order())[0].host_id not in hosts


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        (Quota(instances=1), "project `default` allows 1 instances; this would need 2"),
        (Quota(gpus_default=1), "allows 1 GPUs `V100-SXM2`; this would need 2"),
        (Quota(gpus={"V100-SXM2": 0}), "allows 0 GPUs `V100-SXM2`; this would need 2"),
        (Quota(disk_bytes=GIB), "allows 1 GB of disk; this would need 64 GB"),
    ],
)
def test_quota_error_names_the_quota_and_the_amount(
    installation: Installation, quota: Quota, words: str
) -> None:
    installation.database.write(
        lambda tx: set_quota(tx, installation.tenant.project.id, quota)
    )  # without the caller's knowledge
    with pytest.raises(QuotaReached) as caught:
        launched(installation, Order(shape=CARD, instances=2))
    assert words in caught.value.sentence
    assert held(installation) == ()


def test_launch_in_a_removed_project_is_refused(installation: Installation) -> None:
    installation.database.write(
        lambda tx: remove_project(tx, installation.tenant.project.id, installation.clock.now())
    )
    with pytest.raises(NotFound, match="Project `default` no longer exists"):
        launched(installation, Order())
    assert held(installation) == ()


def test_name_is_unique_in_a_project(installation: Installation) -> None:
    launched(installation, Order(name="heron"))
    with pytest.raises(Conflict, match="The project already has an instance `heron`"):
        launched(installation, Order(name="heron"))


def test_unknown_image_is_refused(installation: Installation) -> None:
    with pytest.raises(BadInput, match="Unknown image `bose`") as caught:
        launched(installation, Order(image="bose"))
    assert "`base`" in caught.value.hint


def test_a_recipe_that_is_not_built_yet_names_its_command(installation: Installation) -> None:
    with pytest.raises(BadInput, match="The image `jupyter` is not built yet") as caught:
        launched(installation, Order(image="jupyter"))
    assert caught.value.hint == "Build it with `tera image build jupyter`"


def test_jupyter_needs_an_image_that_has_it(installation: Installation) -> None:
    with pytest.raises(BadInput, match="The image `base` has no Jupyter") as caught:
        launched(installation, Order(image="base", access=Access.JUPYTER))
    assert "`--image jupyter`" in caught.value.hint
    assert held(installation) == ()


def test_instances_are_invisible_to_other_projects(installation: Installation) -> None:
    made = launched(installation, Order())[0]
    elsewhere = ProjectId("prj_of_somebody_else")
    assert installation.service.page(elsewhere, limit=10) == ()
    for ref in (made.id, made.name):
        with pytest.raises(NotFound):
            installation.service.view(elsewhere, ref)


wishes = st.builds(
    Order,
    shape=st.builds(
        ShapeWish,
        gpu=st.sampled_from(["", "V100"]),
        gpus=st.none(),
        vcpus=st.none() | st.integers(1, 40),
        ram_bytes=st.none() | st.integers(1, 80).map(lambda count: count * GIB),
    ),
    instances=st.integers(1, 3),
)


@settings(max_examples=25)
@given(orders=st.lists(wishes, min_size=1, max_size=12))
def test_nothing_is_claimed_twice(orders: list[Order]) -> None:
    """After any launches and deletions: no card or address is used twice, and no host is overloaded."""
    clock = FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
    installation = Installation(open_database(":memory:", clock), MemoryWorld(), clock)
    for number, order in enumerate(orders):
        try:
            made = launched(installation, order)
        except (NoCapacity, BadInput):  # in use, or more processors than any host has
            continue
        if number % 3 == 2:
            installation.service.delete(installation.tenant.actor, installation.tenant.project, made[0].id)
            installation.workers[0].turn()
        with installation.database.read() as tx:
            rooms = fleet.rooms(tx, Policy())
        assert all(
            min(room.vcpus, room.ram_bytes, room.disk_bytes, *room.free_gpus.values()) >= 0 for room in rooms
        )
        views = installation.service.page(installation.tenant.project.id, limit=100)
        cards = [(view.host_name, card.slot) for view in views for card in view.instance.held.gpus]
        ports = [(view.host_name, port.host_port) for view in views for port in view.instance.held.ports]
        addresses = [view.instance.address for view in views if view.instance.phase != Phase.FAILED]
        for each in (cards, ports, addresses):
            assert len(set(each)) == len(each)
    installation.database.close()


def test_stopped_instance_cannot_grow_beyond_its_host(installation: Installation) -> None:
    made = launched(installation, Order(shape=CARD))[0]
    installation.settle()
    installation.service.stop(installation.tenant.actor, installation.tenant.project, made.id)
    installation.settle()
    with pytest.raises(BadInput, match="too small for 3× V100-SXM2") as caught:
        installation.service.resize(
            installation.tenant.actor, installation.tenant.project, made.id, ShapeWish(gpus=3)
        )
    assert "The largest possible size: 2× V100-SXM2" in caught.value.hint
    installation.service.resize(
        installation.tenant.actor, installation.tenant.project, made.id, ShapeWish(gpus=2)
    )
    installation.service.start(installation.tenant.actor, installation.tenant.project, made.id)
    installation.settle()
    assert len(installation.service.view(installation.tenant.project.id, made.id).instance.held.gpus) == 2


def test_resize_without_room_names_the_wanted_size(installation: Installation) -> None:
    made = launched(installation, Order(shape=CARD, instances=4))[0]
    installation.settle()
    with pytest.raises(NoCapacity, match="no room now for 2× V100-SXM2"):
        installation.service.resize(
            installation.tenant.actor, installation.tenant.project, made.id, ShapeWish(gpus=2)
        )
