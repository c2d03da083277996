"""A real engine for all tests in this folder. It starts once, is emptied after each test, and is skipped if
unavailable."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engine.login import Login
from tests.engine.open_walls import OpenWalls
from tests.engine.sandbox import NoSandbox, Sandbox, mark_cgroups

from teraflock.drivers.lxd import build, daemon
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.setup import PoolWish
from teraflock.fleet.model import HostReport
from teraflock.image import recipe
from teraflock.instance.driver import Handle, Machine, Network, Port, Seen
from teraflock.instance.model import InstanceId
from teraflock.tenant.model import ProjectId

GIB = 1 << 30
MIB = 1 << 20
IMAGES = Path(os.environ.get("TERA_IMAGES", "/var/cache/teraflock/images"))
"""Images outlive the tests: building one takes a minute and needs a mirror."""
INSTALLATION = f"t{os.getpid()}".ljust(4, "0")


@pytest.fixture(scope="session", params=daemon.PROGRAMS, ids=lambda program: program.name)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    try:
        sandbox = Sandbox(program=request.param)
    except NoSandbox as reason:
        pytest.skip(str(reason))
    mark_cgroups(sandbox.folder, f"tera-{INSTALLATION}")
    yield sandbox
    sandbox.close()


@pytest.fixture(scope="session")
def base_image() -> Path:
    """Build the image where there is a network, before any test enters the namespaces."""
    try:
        return build.build(recipe.read("base"), IMAGES, created_at=1)
    except build.BuildFailed as reason:
        pytest.skip(f"the base image cannot be built here: {reason}")


@pytest.fixture(scope="session")
def driver_of_sandbox(sandbox: Sandbox, base_image: Path) -> Iterator[Lxd]:
    report = HostReport(name="here", address="198.51.100.1", vcpus=2, ram_bytes=4 * GIB, disk_bytes=8 * GIB)
    driver = Lxd(
        sandbox.daemon.socket_path,
        INSTALLATION,
        report=lambda: report,
        image_cache=IMAGES,
        now=lambda: 1,
        pool=PoolWish(size_bytes=40 * GIB),
        way_out=False,
        ranges_folder=sandbox.folder / "ids",
    )
    with sandbox.inside():
        driver.set_up()
        driver.build_image("img_base", "base")
    yield driver
    driver.close()


@pytest.fixture
def driver(sandbox: Sandbox, driver_of_sandbox: Lxd) -> Iterator[Lxd]:
    """The driver, on the guests' host. Afterwards everything that the test created is removed."""
    with sandbox.inside():
        yield driver_of_sandbox
        for seen in tuple(driver_of_sandbox.sightings()):
            driver_of_sandbox.delete(Handle(seen.instance_id, seen.host))
        for network in NETWORKS:
            driver_of_sandbox.retire(network)


@pytest.fixture
def client(sandbox: Sandbox) -> Iterator[LxdClient]:
    """A client of the engine for our project, without the driver."""
    client = LxdClient(sandbox.daemon.socket_path, project=f"tera-{INSTALLATION}")
    yield client
    client.close()


NETWORKS = tuple(
    Network(
        project_id=ProjectId(f"prj_{name}"),
        number=number,
        subnet=f"10.128.{16 * number}.0/20",
        gateway=f"10.128.{16 * number}.1",
        domain=f"{name}.internal",
    )
    for number, name in enumerate(("alpha", "beta"), start=1)
)

OPEN: dict[Lxd, OpenWalls] = {}
_numbers = itertools.count(10)


@pytest.fixture
def login(tmp_path: Path) -> Login:
    return Login(tmp_path)


MachineMaker = Callable[..., Machine]


@pytest.fixture
def a_machine(login: Login) -> MachineMaker:
    """A machine that boots the base image and accepts `login`. Each has its own id, address and port."""

    def make(network: Network = NETWORKS[0], **changes: object) -> Machine:
        number = next(_numbers)
        values: dict[str, object] = {
            "handle": Handle(InstanceId(f"ins_{number:016d}"), "here"),
            "hostname": f"box-{number}",
            "image": "img_base",
            "vcpus": 1,
            "ram_bytes": 512 * MIB,
            "disk_bytes": 2 * GIB,
            "network": network,
            "address": network.gateway.rsplit(".", 1)[0] + f".{number}",
            "ports": (Port(20_000 + number, 22),),
            "authorized_keys": (login.public_key,),
        }
        return Machine(**(values | changes))  # type: ignore[arg-type]

    return make


def launched(driver: Lxd, machine: Machine) -> str:
    """Create the machine, open to everything, and wait until it answers. Return its host key."""
    driver.prepare(machine)
    OPEN.setdefault(driver, OpenWalls(driver)).admit(machine.address)
    driver.create(machine)
    driver.start(machine.handle)
    driver.expose(machine)
    for _ in range(30):
        readiness = driver.ready(machine)
        if readiness.ready:
            return readiness.host_key
    raise AssertionError("the guest never answered")


def seen_as(driver: Lxd, machine: Machine) -> Seen | None:
    sighting = driver.look(machine.handle)
    return sighting.seen if sighting else None


@pytest.fixture
def red(driver: Lxd, a_machine: MachineMaker) -> Machine:
    machine = a_machine(NETWORKS[0])
    launched(driver, machine)
    return machine


@pytest.fixture
def blue(driver: Lxd, a_machine: MachineMaker) -> Machine:
    machine = a_machine(NETWORKS[1])
    launched(driver, machine)
    return machine
