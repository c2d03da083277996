"""Several networks, further interfaces and peerings on a real engine: real packets before and after each change."""

import time
from collections.abc import Callable, Iterator, Set

import pytest
from tests.engine.conftest import MachineMaker
from tests.engine.open_walls import GROUP, RULES
from tests.engine.sandbox import OUTSIDE_ADDRESS, Sandbox
from tests.engine.test_network_isolation import CONNECT, ran

from teraflock.drivers.lxd import names
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.network import LxdNetworks
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.instance.driver import Machine, Nic
from teraflock.instance.machines import network_of
from teraflock.network.naming import KnownName
from teraflock.network.walls import Walls, pair
from teraflock.network.walls import network_of as home_of
from teraflock.tenant.model import ProjectId

VISION, SPEECH = ProjectId("prj_vision"), ProjectId("prj_speech")
FRONT = network_of(VISION, 100, "vision", key=VISION, name="default")
BACK = network_of(VISION, 101, "vision", key="net_back", name="back")
OTHER = network_of(SPEECH, 102, "speech", key="net_other", name="default")
CONNECT_ALL = """
import socket, sys, threading
def connect(address):
    try:
        socket.create_connection((address, 22), timeout=1).close()
        print(f"{address}\\n", end="")
    except OSError:
        pass
for address in sys.argv[1:]:
    threading.Thread(target=connect, args=(address,)).start()
"""
PLACES = {"web": (FRONT,), "both": (FRONT, BACK), "db": (BACK,), "far": (OTHER,)}


class Town:
    """Two projects: `web` and `both` in one network, `both` and `db` in another, `far` in that of the other project."""

    def __init__(self, driver: Lxd, a_machine: MachineMaker) -> None:
        self.driver = driver
        self.machines: dict[str, Machine] = {}
        for number, (name, networks) in enumerate(PLACES.items(), start=16):
            first, *more = (Nic(each, each.gateway.removesuffix("1") + str(number)) for each in networks)
            self.machines[name] = a_machine(
                first.network, hostname=name, address=first.address, more_nics=tuple(more)
            )
        for machine in self.machines.values():
            driver.prepare(machine)
        self.enforce()
        for machine in self.machines.values():
            driver.create(machine)
            driver.start(machine.handle)
        for machine in self.machines.values():
            assert any(driver.ready(machine).ready for _ in range(30)), machine.hostname

    def enforce(self, *peers: tuple[str, str]) -> None:
        addresses = sorted(nic.address for each in self.machines.values() for nic in each.nics)
        self.driver.enforce(
            Walls(
                groups={GROUP: RULES},
                stations=dict.fromkeys(addresses, (GROUP,)),
                peers=frozenset(pair(home_of(one), home_of(other)) for one, other in peers),
            )
        )

    def reaches(self, source: str, address: str) -> str:
        return ran(self.driver, self.machines[source], "python3", "-c", CONNECT, address, "22")

    def picture(self) -> set[tuple[str, str]]:
        """Every machine and address that it reaches."""
        addresses = {nic.address for each in self.machines.values() for nic in each.nics}
        return {
            (source, address)
            for source, machine in self.machines.items()
            for address in self._reached(machine, addresses - {nic.address for nic in machine.nics})
        }

    def _reached(self, machine: Machine, addresses: Set[str]) -> list[str]:
        return ran(self.driver, machine, "python3", "-c", CONNECT_ALL, *sorted(addresses)).split()


@pytest.fixture
def town(driver: Lxd, a_machine: MachineMaker) -> Iterator[Town]:
    made = Town(driver, a_machine)
    yield made
    for machine in made.machines.values():
        driver.delete(machine.handle)
    for network in (FRONT, BACK, OTHER):
        driver.retire(network)


def test_packets_stay_in_their_network_unless_it_is_peered(
    town: Town, sandbox: Sandbox, client: LxdClient
) -> None:
    web, both, db, far = (town.machines[each] for each in PLACES)
    inner = both.more_nics[0].address
    within = {
        ("web", both.address), ("both", web.address), ("both", db.address), ("db", inner),
    }  # fmt: skip
    assert town.picture() == within
    town.enforce((web.address, far.address))
    across = within | {
        ("web", far.address), ("both", far.address), ("far", web.address), ("far", both.address),
    }  # fmt: skip
    assert town.picture() == across, "not through the peer into a third network"
    other_process = LxdNetworks(
        LxdClient(sandbox.daemon.socket_path), names.Names(town.driver._ours.installation), way_out=False
    )
    other_process.rebuild()
    assert town.reaches("web", far.address) == "open", "a rebuild by another process keeps the peering"
    town.enforce((db.address, far.address))
    assert town.picture() == within | {("db", far.address), ("far", db.address), ("far", inner)}
    town.enforce()
    assert town.picture() == within
    check_names(town)
    check_inner_interface(town, sandbox)


def check_names(town: Town) -> None:
    """Short names are those of the own network, longer ones those of every network of the project."""
    both = town.machines["both"]

    def resolved(source: str, name: str) -> str:
        return ran(town.driver, town.machines[source], "getent", "ahostsv4", name).partition(" ")[0]

    inner = both.more_nics[0].address
    assert resolved("web", "both") == resolved("web", "both.vision.internal") == both.address
    assert resolved("db", "both") == resolved("db", "both.vision.internal") == inner
    assert resolved("web", "both.back.vision.internal") == inner
    assert resolved("db", "both.default.vision.internal") == both.address
    assert resolved("web", "db.back.vision.internal") == town.machines["db"].address
    assert resolved("web", "db") == "", "it is not in this network"
    assert resolved("far", "both.back.vision.internal") == "", "nor in this project"
    far = town.machines["far"]
    names_of_peer = KnownName(far.id, far.address, ("far.speech.internal",), network=FRONT.key)
    hostile = KnownName(far.id, far.address, ("x y\n10.0.0.1 web",), network=FRONT.key)
    town.driver.know([names_of_peer, hostile])
    until_equal(lambda: resolved("web", "far.speech.internal"), far.address)
    assert resolved("web", "far") == "", "only the long name"
    assert resolved("db", "far.speech.internal") == "", "its network is not peered"
    assert resolved("web", "both") == both.address, "own names stay"
    town.driver.know([])
    until_equal(lambda: resolved("web", "far.speech.internal"), "")


def until_equal(get: Callable[[], str], wanted: str) -> None:
    """The DNS server reads a changed file a moment later."""
    for _ in range(100):
        if get() == wanted:
            return
        time.sleep(0.05)
    assert get() == wanted


def check_inner_interface(town: Town, sandbox: Sandbox) -> None:
    """A further interface leads to private networks only, and accepts no other sender."""
    both, web = town.machines["both"], town.machines["web"]
    inner = both.more_nics[0]
    ping = ("ping", "-c", "1", "-W", "1")
    assert "1 received" in ran(town.driver, both, *ping, inner.network.gateway)
    assert "0 received" in ran(town.driver, both, *ping, "-I", "eth1", OUTSIDE_ADDRESS)
    ran(town.driver, both, "ip", "route", "replace", web.address, "dev", "eth1")
    assert "0 received" in ran(town.driver, both, *ping, "-I", both.address, web.address)
    town.driver.stop(both.handle, force=True)
    town.driver.start(both.handle)
    assert any(town.driver.ready(both).ready for _ in range(30))
    assert town.reaches("both", town.machines["db"].address) == "open", "a restart brings all interfaces back"
    assert not town.driver.look(both.handle).altered  # type: ignore[union-attr]
