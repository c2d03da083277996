"""A temporary guest for one probe from inside. It has its own network and no row in the database.

It has no instance id, so the loops ignore it. The next probe removes what an interrupted one left.
"""

import contextlib
import json
import secrets
import time
from collections.abc import Collection, Sequence
from importlib.resources import files
from typing import Final, Protocol

from teraflock.base.quantities import GIB
from teraflock.drivers.lxd import names
from teraflock.drivers.lxd.moulds import remove
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.network import LxdNetworks
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.instance.driver import Handle, Machine, Network, Ran
from teraflock.instance.engine_errors import EngineRefused
from teraflock.instance.model import InstanceId
from teraflock.tenant.model import ProjectId

PREFIX: Final = "probe-"
NETWORK: Final = Network(
    project_id=ProjectId(names.PROBE_PROJECT), number=-1, subnet="10.127.255.240/28", gateway="10.127.255.241"
)
"""Outside the range of projects' networks."""
ADDRESS: Final = "10.127.255.250"
TRIES_MAX: Final = 100
TRY_AGAIN_SECONDS: Final = 0.1
PROBE_SECONDS_MAX: Final = 60.0


class Maker(Protocol):
    """The driver calls that this module needs."""

    networks: LxdNetworks

    def prepare(self, machine: Machine) -> None: ...
    def create_without_id(self, machine: Machine) -> None: ...
    def start(self, handle: Handle) -> None: ...
    def run(self, handle: Handle, command: Sequence[str], *, stdin: bytes, seconds_max: float) -> Ran: ...
    def release(self, handle: Handle) -> None: ...
    def retire(self, network: Network) -> None: ...


class Throwaway:
    def __init__(self, driver: Maker, engine: LxdClient, ours: Names) -> None:
        self._driver = driver
        self._engine = engine
        self._ours = ours

    def probed(self, targets: Sequence[str], images: Collection[str]) -> dict[str, dict[str, str]]:
        """Run the probe. `images` must be built by us: a tenant's image could fake the results."""
        if not images:
            raise EngineRefused("No image to run the probe in", hint="Run `tera image build base`")
        self._remove_left()
        machine = _machine(min(images))
        name = names.guest(machine.id)
        try:
            self._driver.prepare(machine)
            self._driver.create_without_id(machine)
            self._driver.start(machine.handle)
            return self._said(machine, targets)
        finally:
            with contextlib.suppress(EngineRefused):
                remove(self._engine, name)
            folders = (NETWORK.project_id, self._ours.bridge(NETWORK.key))
            self._driver.networks.dismiss(machine.id, (machine.address,), folders)
            self._driver.release(machine.handle)
            self._driver.retire(NETWORK)

    def _said(self, machine: Machine, targets: Sequence[str]) -> dict[str, dict[str, str]]:
        script = (files("teraflock.drivers.lxd") / "probe.py").read_bytes()
        for _ in range(TRIES_MAX):
            # Its address is set a moment after its first process starts.
            ready = self._driver.run(
                machine.handle, ["ip", "route", "get", NETWORK.gateway], stdin=b"", seconds_max=10
            )
            if ready.exit_code == 0:
                break
            time.sleep(TRY_AGAIN_SECONDS)
        ran = self._driver.run(
            machine.handle, ["python3", "-", *targets], stdin=script, seconds_max=PROBE_SECONDS_MAX
        )
        if ran.exit_code:
            raise EngineRefused(
                "The probe failed inside its guest",
                context={"output": ran.stderr.decode("utf-8", "replace")[-500:]},
            )
        found: dict[str, dict[str, str]] = json.loads(ran.stdout)
        return found

    def _remove_left(self) -> None:
        for name in self._engine.names("instances"):
            if name.startswith(PREFIX):
                remove(self._engine, name)
                self._driver.release(Handle(InstanceId(name), ""))


def _machine(image: str) -> Machine:
    return Machine(
        handle=Handle(InstanceId(f"{PREFIX}{secrets.token_hex(6)}"), ""),
        hostname="probe",
        image=image,
        vcpus=1,
        ram_bytes=GIB,
        disk_bytes=2 * GIB,
        network=NETWORK,
        address=ADDRESS,
    )
