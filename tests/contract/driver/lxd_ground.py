"""Real LXD or Incus as a test ground, in its own namespaces; see `tests/engine/sandbox.py`."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.contract.driver.grounds import Ground, network
from tests.engine import broken_image
from tests.engine.conftest import IMAGES
from tests.engine.open_walls import OpenWalls
from tests.engine.sandbox import INSIDE_ADDRESS, Sandbox, mark_cgroups

from teraflock.base.quantities import GIB
from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.setup import PoolWish
from teraflock.fleet.model import HostReport
from teraflock.instance.driver import Machine, Port

INSTALLATION = f"c{os.getpid()}".ljust(4, "0")
PROJECTS_MAX = 10
KNOCK = "import socket, sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 3).recv(4))"


class LxdSurroundings:
    real = True
    image = "img_base"
    image_broken = "img_broken"

    def __init__(self, sandbox: Sandbox, name: str) -> None:
        self.sandbox = sandbox
        self.name = name

    def pass_time(self, seconds: float) -> None:
        time.sleep(seconds)

    def port_answers(self, machine: Machine, port: Port) -> bool:
        """Check from outside: the guest's SSH server must answer on the host's port."""
        said = self.sandbox.outside(sys.executable, "-c", KNOCK, INSIDE_ADDRESS, str(port.host_port))
        return said.returncode == 0 and "SSH-" in said.stdout


def driver_in(sandbox: Sandbox) -> Lxd:
    mark_cgroups(sandbox.folder, f"tera-{INSTALLATION}")
    report = HostReport(
        name=socket.gethostname(), address=INSIDE_ADDRESS, vcpus=2, ram_bytes=4 * GIB, disk_bytes=8 * GIB
    )
    driver = Lxd(
        sandbox.daemon.socket_path,
        INSTALLATION,
        report=lambda: report,
        image_cache=IMAGES,
        now=lambda: 1,
        pool=PoolWish(size_bytes=10 * GIB),
        way_out=False,
    )
    with sandbox.inside():
        driver.set_up()
        driver.build_image(LxdSurroundings.image, "base")
        _bring_broken(sandbox)
    return driver


def _bring_broken(sandbox: Sandbox) -> None:
    engine = LxdClient(sandbox.daemon.socket_path, project=f"tera-{INSTALLATION}")
    file = broken_image.write(sandbox.folder / "broken.tar")
    fingerprint = engine.post("images", body=file)["fingerprint"]
    engine.post("images", "aliases", body={"name": LxdSurroundings.image_broken, "target": fingerprint})
    engine.close()


class LxdGround(Ground):
    """Every machine is open to everything: the contract is about ports, not about security groups."""

    def __init__(self, driver: Lxd, around: LxdSurroundings) -> None:
        super().__init__(driver, around)
        self._open = OpenWalls(driver)

    def machine(self, *, project: int = 1, **changes: object) -> Machine:
        made = super().machine(project=project, **changes)
        self._open.admit(made.address)
        return made


@contextmanager
def lxd_ground(sandbox: Sandbox, driver: Lxd, name: str) -> Iterator[Ground]:
    with sandbox.inside():
        ground = LxdGround(driver, LxdSurroundings(sandbox, name))
        try:
            yield ground
        finally:
            ground.clear()
            for number in range(1, PROJECTS_MAX):
                driver.retire(network(number))
