"""Cards are divided only while nobody holds them, and nobody gets them meanwhile. On both databases."""

from datetime import UTC, datetime

import pytest
from tests.faults import house as houses
from tests.faults.house import House

from teraflock.base.clock import FixedClock
from teraflock.base.errors import BadInput, Conflict, NotFound
from teraflock.drivers.simulated.faults import Kind, SimulatedFault
from teraflock.drivers.simulated.model import DividedCard
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.fleet.slicing.model import SlicingState
from teraflock.fleet.slicing.rules import state_of
from teraflock.fleet.slicing.service import SlicingService
from teraflock.instance.claims import NoCapacity
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.storage.database import Database

START = datetime(2026, 11, 15, tzinfo=UTC)
HOST = "simulated-0001"
CARD = "0000:01:00.0"
HALVES = ("3g.71gb", "3g.71gb")


@pytest.fixture
def house(database: Database, monkeypatch: pytest.MonkeyPatch) -> House:
    """One host with two cards."""
    monkeypatch.setattr(houses, "HOSTS", "1x2xH200")
    return House(database, MemoryWorld(), FixedClock(START))


def launched(house: House, gpu: str) -> Instance:
    order = Order(shape=ShapeWish(gpu=gpu, vcpus=1, ram_bytes=1 << 30))
    return house.service.launch(house.tenant.actor, house.tenant.project, order)[0]


def divide(house: House, *profiles: str, card: str = "0") -> None:
    SlicingService(house.database, house.clock, house.random_bytes).divide(
        house.tenant.actor, HOST, card, profiles
    )


def state(house: House) -> SlicingState:
    (view,) = SlicingService(house.database, house.clock).of_host(HOST)
    return state_of(view)


def free(house: House) -> list[str]:
    with house.database.read() as tx:
        return sorted(
            row[0] for row in tx.all("SELECT gpu FROM host_gpu WHERE instance_id IS NULL AND healthy = 1")
        )


def test_a_card_becomes_slices_and_whole_again(house: House) -> None:
    divide(house, *HALVES)
    assert free(house) == ["H200-SXM"]
    assert state(house) == SlicingState.WAITING
    house.settle()
    assert state(house) == SlicingState.DONE
    assert free(house) == ["H200-SXM", "H200-SXM:3g.71gb", "H200-SXM:3g.71gb"]
    half = launched(house, "H200 3g.71gb")
    house.settle()
    with pytest.raises(Conflict, match="in use by 1 instance"):
        divide(house)
    house.service.delete(house.tenant.actor, house.tenant.project, half.id)
    house.settle()
    divide(house)
    house.settle()
    assert free(house) == ["H200-SXM", "H200-SXM"]


def test_a_slice_is_not_replaced_by_a_whole_card(house: House) -> None:
    with pytest.raises(BadInput, match="No host has the GPU model `H200 3g.71gb`"):
        launched(house, "H200 3g.71gb")


def test_nobody_gets_a_card_that_waits_to_be_divided(house: House) -> None:
    first = launched(house, "H200")
    divide(house, *HALVES, card="0000:02:00.0")
    for worker in house.workers:
        worker.hosts.turn()  # a report does not make it free
    with pytest.raises(NoCapacity):
        launched(house, "H200")
    house.settle()
    assert free(house) == ["H200-SXM:3g.71gb", "H200-SXM:3g.71gb"]
    assert first.held.gpus[0].slot == CARD


def test_a_refused_card_can_be_used_again(house: House) -> None:
    divide(house, *HALVES)
    house.trouble.faults(SimulatedFault(call="slice_card", kind=Kind.REFUSED))
    worker = house.workers[0]
    worker.slices.turn()
    worker.hosts.turn()
    assert state(house) == SlicingState.REFUSED
    assert free(house) == ["H200-SXM", "H200-SXM"]
    divide(house, *HALVES)
    house.settle()
    assert state(house) == SlicingState.DONE


def test_slices_that_a_reboot_took_are_made_again(house: House) -> None:
    divide(house, *HALVES)
    house.settle()
    half = launched(house, "H200 3g.71gb")
    house.settle()
    with house.world.write() as turn:
        turn.put(DividedCard(host=HOST, address=CARD, profiles=()))
    house.workers[0].hosts.turn()
    house.workers[0].slices.turn()
    assert state(house) == SlicingState.WAITING  # the guest still runs
    house.trouble.host_comes_back(HOST, rebooted=True)
    house.settle()
    assert state(house) == SlicingState.DONE
    found = house.service.view(house.tenant.project.id, half.id).instance
    assert found.held.gpus == half.held.gpus
    assert found.phase == Phase.RUNNING
    assert free(house) == ["H200-SXM", "H200-SXM:3g.71gb"]


@pytest.mark.parametrize(
    ("card", "profiles", "error"),
    [("7", HALVES, NotFound), ("nonsense", HALVES, NotFound), ("0", ("9g.9gb",), BadInput)],
)
def test_bad_input_changes_nothing(
    house: House, card: str, profiles: tuple[str, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        divide(house, *profiles, card=card)
    assert free(house) == ["H200-SXM", "H200-SXM"]
