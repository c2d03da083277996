"""Public addresses with real packets: in, out, and cut when they lead elsewhere."""

import subprocess
from collections.abc import Iterator

import pytest
from tests.engine.conftest import NETWORKS, MachineMaker, launched
from tests.engine.inside import python
from tests.engine.open_walls import GROUP, RULES
from tests.engine.sandbox import OUTSIDE_ADDRESS, Sandbox

from teraflock.drivers.lxd.driver import Lxd
from teraflock.instance.driver import Machine
from teraflock.network.walls import Floating, Walls

PUBLIC = "203.0.113.16"
BANNER = """
import socket, sys
try:
    print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).recv(7).decode())
except OSError as error:
    print(error)
"""
ASK = """
import socket
used = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); used.settimeout(3)
used.sendto(b"who", ("%s", 9000))
print(used.recv(64).decode())
"""
ANSWER = """
import socket
used = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); used.bind(("", 9000)); print("ready", flush=True)
while True:
    _, sender = used.recvfrom(64)
    used.sendto(sender[0].encode(), sender)
"""
HOLD = """
import socket, sys
link = socket.create_connection((sys.argv[1], 22), 5); link.recv(64)
print("held", flush=True); sys.stdin.readline()
try:
    link.settimeout(3); link.sendall(b"SSH-2.0-x\\r\\n"); print("answer" if link.recv(64) else "closed", flush=True)
except OSError as error:
    print(type(error).__name__, flush=True)
"""


@pytest.fixture
def open_driver(driver: Lxd) -> Iterator[Lxd]:
    """A driver whose guests reach the neighbour."""
    driver.networks._way_out = True
    driver.allow_out("here", (f"{OUTSIDE_ADDRESS}/32",))
    yield driver
    driver.enforce(Walls())
    driver.networks._way_out = False
    driver.allow_out("here", ())


def enforce(driver: Lxd, machines: list[Machine], *floating: Floating) -> None:
    stations = {each.address: (GROUP,) for each in machines}
    driver.enforce(Walls(groups={GROUP: RULES}, stations=stations, floating=floating))


def test_an_address_leads_to_its_guest_and_hides_it_outside(
    open_driver: Lxd, a_machine: MachineMaker, sandbox: Sandbox
) -> None:
    one, other = (a_machine(NETWORKS[0]) for _ in range(2))
    for machine in (one, other):
        launched(open_driver, machine)
    both = [one, other]

    def banner(port: int = 22) -> str:
        return sandbox.outside("python3", "-c", BANNER, PUBLIC, str(port)).stdout.strip()

    enter = ["nsenter", f"--target={sandbox.outside_pid}", "--net", "--", "python3", "-c"]
    with subprocess.Popen([*enter, ANSWER], stdout=subprocess.PIPE, text=True) as neighbour:
        assert neighbour.stdout is not None
        assert neighbour.stdout.readline() == "ready\n"
        assert "SSH-2.0" not in banner()
        assert python(open_driver, one, ASK % OUTSIDE_ADDRESS) != PUBLIC
        enforce(open_driver, both, Floating(PUBLIC, one.address))
        assert banner() == "SSH-2.0"
        assert "SSH-2.0" not in banner(other.ports[0].host_port), (
            "ports of the host are not ports of the address"
        )
        assert python(open_driver, one, ASK % OUTSIDE_ADDRESS) == PUBLIC
        assert python(open_driver, other, ASK % OUTSIDE_ADDRESS) != PUBLIC
        neighbour.kill()
    words = [*enter, HOLD, PUBLIC]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == "held\n"
        enforce(open_driver, both, Floating(PUBLIC, one.address))
        enforce(open_driver, both, Floating(PUBLIC, other.address))
        assert "answer" not in held.communicate("go\n")[0], "the connection to the old guest is cut"
    assert banner() == "SSH-2.0"
    enforce(open_driver, both)
    assert "SSH-2.0" not in banner()
    shown = subprocess.run(["ip", "address", "show", "dev", "lo"], capture_output=True, text=True, check=True)
    assert PUBLIC not in shown.stdout
