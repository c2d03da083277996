"""A small simulated world for tests."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from teraflock.base.clock import Clock, FixedClock
from teraflock.drivers.opening import Opening
from teraflock.drivers.registry import open_site
from teraflock.drivers.simulated.cloud import SimulatedCloud
from teraflock.drivers.simulated.engine import SimulatedEngine
from teraflock.drivers.simulated.fleet import fleet
from teraflock.drivers.simulated.store import FileWorld
from teraflock.drivers.simulated.trouble import Trouble
from teraflock.drivers.simulated.world import MemoryWorld, World
from teraflock.fleet.model import GpuKind
from teraflock.instance.driver import GpuSlot, Handle, Machine, Network, Port, Rental
from teraflock.instance.model import InstanceId
from teraflock.tenant.model import ProjectId

FIRST_HOST, SECOND_HOST = "simulated-0001", "simulated-0002"
NETWORK = Network(project_id=ProjectId("prj_1"), number=0, subnet="10.128.0.0/20", gateway="10.128.0.1")


TYPES = "gpu=1xV100@east:0.90/0.30,west:1.00"


def opened(folder: Path, clock: Clock, **options: str) -> SimulatedEngine:
    """Open a simulated site as a server does."""
    engine = open_site(
        "simulated", Opening(name="simulated", options=options, folder=folder, mark="", clock=clock)
    )
    assert isinstance(engine, SimulatedEngine)
    return engine


class Bench:
    """An engine with a clock to move and faults to inject."""

    def __init__(self, world: World, *, style: str = "own", mark: str = "test", image: str = "base") -> None:
        self.world = world
        self.clock = FixedClock(datetime(2026, 11, 15, tzinfo=UTC))
        self.trouble = Trouble(world)
        self.engine = (
            SimulatedCloud(world, self.clock, types=TYPES, mark=mark, boot_seconds=1)
            if style == "cloud"
            else SimulatedEngine(world, self.clock, fleet("2x4xV100"), mark=mark, boot_seconds=1)
        )
        self.engine.build_image(image, "base")

    def launch(self, machine: Machine) -> None:
        self.engine.prepare(machine)
        self.engine.create(machine)
        self.engine.start(machine.handle)
        self.engine.expose(machine)

    def wait(self, seconds: float) -> None:
        self.clock.move(timedelta(seconds=seconds))


def bench(form: str, folder: Path) -> Bench:
    world: World = FileWorld(folder / "world.db") if form == "file" else MemoryWorld()
    return Bench(world)


def machine(number: int, *, host: str = FIRST_HOST, gpus: tuple[str, ...] = ()) -> Machine:
    return Machine(
        handle=Handle(InstanceId(f"ins_{number:04d}"), host),
        hostname=f"guest-{number}",
        image="base",
        vcpus=2,
        ram_bytes=1 << 30,
        disk_bytes=1 << 33,
        gpus=tuple(GpuSlot(slot, GpuKind.PHYSICAL) for slot in gpus),
        network=NETWORK,
        address=f"10.128.0.{16 + number}",
        ports=(Port(20_000 + number, 22), Port(21_000 + number, 8888)),
        rental=None if host else Rental(type="gpu", region="east", token=f"token-{number}"),
    )
