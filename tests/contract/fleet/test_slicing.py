"""Cards are divided only while nobody holds them, and nobody gets them meanwhile. On both databases."""

from datetime import UTC, datetime

import pytest
from tests.faults import installation as installations
from tests.faults.installation import Installation

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
def installation(database: Database, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """One host with two cards."""
    monkeypatch.setattr(installations, "HOSTS", "1x2xH200")
    return Installation(database, MemoryWorld(), FixedClock(START))


def launched(installation: Installation, gpu: str) -> Instance:
    order = Order(shape=ShapeWish(gpu=gpu, vcpus=1, ram_bytes=1 << 30))
    return installation.service.launch(installation.tenant.actor, installation.tenant.project, order)[0]


def divide(installation: Installation, *profiles: str, card: str = "0") -> None:
    SlicingService(installation.database, installation.clock, installation.random_bytes).divide(
        installation.tenant.actor, HOST, card, profiles
    )


def state(installation: Installation) -> SlicingState:
    (view,) = SlicingService(installation.database, installation.clock).of_host(HOST)
    return state_of(view)


def free(installation: Installation) -> list[str]:
    with installation.database.read() as tx:
        return sorted(
            row[0] for row in tx.all("SELECT gpu FROM host_gpu WHERE instance_id IS NULL AND healthy = 1")
        )


def test_a_card_becomes_slices_and_whole_again(installation: Installation) -> None:
    divide(installation, *HALVES)
    assert free(installation) == ["H200-SXM"]
    assert state(installation) == SlicingState.WAITING
    installation.settle()
    assert state(installation) == SlicingState.DONE
    assert free(installation) == ["H200-SXM", "H200-SXM:3g.71gb", "H200-SXM:3g.71gb"]
    half = launched(installation, "H200 3g.71gb")
    installation.settle()
    with pytest.raises(Conflict, match="in use by 1 instance"):
        divide(installation)
    installation.service.delete(installation.tenant.actor, installation.tenant.project, half.id)
    installation.settle()
    divide(installation)
    installation.settle()
    assert free(installation) == ["H200-SXM", "H200-SXM"]


def test_a_slice_is_not_replaced_by_a_whole_card(installation: Installation) -> None:
    with pytest.raises(BadInput, match="No host has the GPU model `H200 3g.71gb`"):
        launched(installation, "H200 3g.71gb")


def test_nobody_gets_a_card_that_waits_to_be_divided(installation: Installation) -> None:
    first = launched(installation, "H200")
    divide(installation, *HALVES, card="0000:02:00.0")
    for worker in installation.workers:
        worker.hosts.turn()  # a report does not make it free
    with pytest.raises(NoCapacity):
        launched(installation, "H200")
    installation.settle()
    assert free(installation) == ["H200-SXM:3g.71gb", "H200-SXM:3g.71gb"]
    assert first.held.gpus[0].slot == CARD


def test_a_refused_card_can_be_used_again(installation: Installation) -> None:
    divide(installation, *HALVES)
    installation.trouble.faults(SimulatedFault(call="slice_card", kind=Kind.REFUSED))
    worker = installation.workers[0]
    worker.slices.turn()
    worker.hosts.turn()
    assert state(installation) == SlicingState.REFUSED
    assert free(installation) == ["H200-SXM", "H200-SXM"]
    divide(installation, *HALVES)
    installation.settle()
    assert state(installation) == SlicingState.DONE


def test_slices_that_a_reboot_took_are_made_again(installation: Installation) -> None:
    divide(installation, *HALVES)
    installation.settle()
    half = launched(installation, "H200 3g.71gb")
    installation.settle()
    with installation.world.write() as turn:
        turn.put(DividedCard(host=HOST, address=CARD, profiles=()))
    installation.workers[0].hosts.turn()
    installation.workers[0].slices.turn()
    assert state(installation) == SlicingState.WAITING  # the guest still runs
    installation.trouble.host_comes_back(HOST, rebooted=True)
    installation.settle()
    assert state(installation) == SlicingState.DONE
    found = installation.service.view(installation.tenant.project.id, half.id).instance
    assert found.held.gpus == half.held.gpus
    assert found.phase == Phase.RUNNING
    assert free(installation) == ["H200-SXM", "H200-SXM:3g.71gb"]


@pytest.mark.parametrize(
    ("card", "profiles", "error"),
    [("7", HALVES, NotFound), ("nonsense", HALVES, NotFound), ("0", ("9g.9gb",), BadInput)],
)
def test_bad_input_changes_nothing(
    installation: Installation, card: str, profiles: tuple[str, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        divide(installation, *profiles, card=card)
    assert free(installation) == ["H200-SXM", "H200-SXM"]
