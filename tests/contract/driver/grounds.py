"""The test ground of a contract test: a driver, and what differs between engines.

Every machine from a ground has its own id, address and ports, and is deleted when the test ends: tests share
a real engine, one after the other.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple, Protocol

from hypothesis import Phase, settings

from teraflock.base.quantities import GIB, MIB
from teraflock.instance.driver import (
    Capability,
    ComputeDriver,
    Handle,
    Machine,
    Network,
    Port,
    Readiness,
    Rental,
)
from teraflock.instance.engine_errors import EngineRefused
from teraflock.instance.model import InstanceId
from teraflock.network.rules import gateway, subnet
from teraflock.tenant.model import ProjectId

LOOKS_MAX = 600
STAGES = ("prepare", "create", "start", "expose", "ready")
BROKEN_OFF = tuple(STAGES[:length] for length in range(len(STAGES) + 1))
"""Launches interrupted after each of their calls."""


def network(number: int) -> Network:
    """Return the network of the project with this number."""
    return Network(
        project_id=ProjectId(f"prj_contract{number:08d}"),
        number=number,
        subnet=str(subnet(number)),
        gateway=str(gateway(number)),
    )


class Surroundings(Protocol):
    """What differs between engines, besides the driver."""

    name: str
    real: bool
    image: str
    """An image that the engine has and that boots."""
    image_broken: str
    """An image that does not boot."""

    def pass_time(self, seconds: float) -> None: ...

    def port_answers(self, machine: Machine, port: Port) -> bool:
        """Check whether the host's port leads to the guest."""
        ...


class Ground:
    _numbers = itertools.count(1)

    def __init__(self, driver: ComputeDriver, around: Surroundings) -> None:
        self.driver = driver
        self.around = around
        self._made: dict[InstanceId, Handle] = {}
        hosts = driver.hosts()
        self.host = hosts[0].name if hosts else ""

    def can(self, capability: Capability) -> bool:
        return capability in self.driver.capabilities

    def machine(self, *, project: int = 1, **changes: object) -> Machine:
        number = next(self._numbers)
        values: dict[str, object] = {
            "handle": Handle(InstanceId(f"ins_{number:016d}"), self.host),
            "hostname": f"guest-{number}",
            "image": self.around.image,
            "vcpus": 1,
            "ram_bytes": 256 * MIB,
            "disk_bytes": 2 * GIB,
            "network": network(project),
            "address": str(subnet(project)[16 + number % 4000]),
            "ports": (Port(20_000 + number, 22),),
        }
        if not self.can(Capability.PLACEMENT):
            first = self.driver.types()[0]
            values["rental"] = Rental(type=first.name, region=first.region, token=f"{number}.1.0")
        made = Machine(**{**values, **changes})  # type: ignore[arg-type]
        self._made[made.id] = made.handle
        return made

    def advance(self, machine: Machine, stage: str) -> None:
        """Make one call of a launch. The last call waits until the guest answers."""
        if stage == "create":
            self.create(machine)
        elif stage == "start":
            self.driver.start(machine.handle)
        elif stage == "ready":
            self.answers(machine)
        else:
            call: Callable[[Machine], None] = getattr(self.driver, stage)
            call(machine)

    def create(self, machine: Machine) -> None:
        """Create a machine and wait until a listing shows it: tests find machines only by their labels."""
        self.driver.create(machine)
        for _ in range(LOOKS_MAX):
            if machine.id in self.sighted():
                return
            self.around.pass_time(0.5)
        raise AssertionError("the machine is not listed")

    def up(self, **changes: object) -> Machine:
        """Return a machine that runs and answers."""
        machine = self.machine(**changes)  # type: ignore[arg-type]
        for stage in STAGES:
            self.advance(machine, stage)
        return machine

    def answers(self, machine: Machine) -> Readiness:
        for _ in range(LOOKS_MAX):
            if (readiness := self.driver.ready(machine)).ready:
                return readiness
            self.around.pass_time(0.5)
        raise AssertionError("the guest does not answer")

    def sighted(self) -> set[InstanceId]:
        return {sighting.instance_id for sighting in self.driver.sightings()}

    def words(self, machine: Machine, *command: str, stdin: bytes = b"") -> bytes:
        ran = self.driver.run(machine.handle, command, stdin=stdin, seconds_max=30)
        assert ran.exit_code == 0, ran
        return ran.stdout

    def clear(self) -> None:
        for handle in self._made.values():
            self.driver.delete(handle)
        self._made.clear()


class Guest(NamedTuple):
    """A machine that runs and answers."""

    ground: Ground
    machine: Machine


def examples(ground: Ground) -> settings:
    """Limit the examples: a real engine takes seconds for each, so failures are not shrunk either."""
    if ground.around.real:
        return settings(max_examples=3, deadline=None, phases=[Phase.generate])
    return settings(max_examples=60, deadline=None)


def refused(call: Callable[[], object]) -> str:
    """Return the error code with which a call is refused."""
    try:
        call()
    except EngineRefused as error:
        return error.code
    raise AssertionError("the call was not refused")
