"""The flood guard with real packets: a guest that floods is slowed down, its neighbours are not.
With IPv4 and with IPv6."""

import json
import subprocess
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from tests.engine.conftest import NETWORKS, MachineMaker, launched
from tests.engine.inside import python, ran
from tests.engine.sandbox import INSIDE_ADDRESS, Sandbox

from teraflock.drivers.lxd.driver import Lxd
from teraflock.drivers.lxd.flood import FloodLimits
from teraflock.instance.driver import Machine
from teraflock.network.ipv6 import six

LIMITS = FloodLimits(connections_per_second=40, packets_per_second=200)
SEND = """
import socket, sys
used = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[3])):
    try:
        used.sendto(b"x", (sys.argv[1], int(sys.argv[2])))
    except OSError:
        pass
"""
RECEIVE = """
import os, socket, sys, time
used = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)  # hears IPv4, too
used.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
used.bind(("", 9000))
if os.fork():
    os._exit(0)
os.setsid()
for descriptor in (0, 1, 2):
    os.dup2(os.open("/dev/null", os.O_RDWR), descriptor)
used.settimeout(1)
count, begun = 0, False
until = time.monotonic() + 60
while time.monotonic() < until:
    try:
        used.recv(8)
        count, begun = count + 1, True
    except TimeoutError:
        if begun:
            break
open("/tmp/count.new", "w").write(str(count))
os.rename("/tmp/count.new", "/tmp/count")
"""
ACCEPT = """
import os, socket, time
used = socket.create_server(("", 9001), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
if os.fork():
    os._exit(0)
os.setsid()
for descriptor in (0, 1, 2):
    os.dup2(os.open("/dev/null", os.O_RDWR), descriptor)
time.sleep(120)
"""
CONNECT = """
import select, socket, sys
sockets = []
for _ in range(int(sys.argv[3])):
    used = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET); used.setblocking(False)
    used.connect_ex((sys.argv[1], int(sys.argv[2])))
    sockets.append(used)
import time; time.sleep(0.5)
_, done, _ = select.select([], sockets, [], 0)
print(sum(each.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 for each in done))
"""


@pytest.fixture
def limited(driver: Lxd) -> Iterator[Lxd]:
    before = driver.networks.flood_limits
    driver.networks.flood_limits = LIMITS
    yield driver
    driver.networks.flood_limits = before
    driver.networks.rebuild()


def received(driver: Lxd, sender: Machine, target: Machine, packets: int, *, address: str = "") -> int:
    ran(driver, target, "rm", "-f", "/tmp/count")
    python(driver, target, RECEIVE)
    python(driver, sender, SEND, address or target.address, "9000", str(packets))
    wait = "until [ -e /tmp/count ]; do sleep 0.1; done; cat /tmp/count"
    return int(ran(driver, target, "sh", "-c", wait))


@pytest.mark.long("sends floods for seconds")
def test_floods_are_cut_to_the_limit_and_others_are_not_touched(
    limited: Lxd, a_machine: MachineMaker, sandbox: Sandbox
) -> None:
    noisy, calm = (a_machine(NETWORKS[0]) for _ in range(2))
    for machine in (noisy, calm):
        launched(limited, machine)
    limited.networks.rebuild()
    table = limited.networks._ours.flood_table
    many = 20 * LIMITS.packets_per_second
    # Packets: about twice the limit at once, and the limit for each second that sending takes.
    for address in (calm.address, six(calm.address)):
        assert received(limited, noisy, calm, many, address=address) < many / 2
    for address in (noisy.address, six(noisy.address)):
        assert received(limited, calm, noisy, 100, address=address) == 100, "within the limit nothing is lost"
    # New connections, from a guest and to a guest. Without a limit on packets, which would do the same.
    limited.networks.flood_limits = replace(LIMITS, packets_per_second=0)
    limited.networks.rebuild()
    python(limited, calm, ACCEPT)
    for address in (calm.address, six(calm.address)):
        opened = int(python(limited, noisy, CONNECT, address, "9001", "800"))
        assert 0 < opened < 400
    script = ["python3", "-c", CONNECT, INSIDE_ADDRESS, str(calm.ports[0].host_port), "800"]
    assert 0 < int(sandbox.outside(*script).stdout) < 400
    # A table that was removed comes back.
    subprocess.run(["nft", "delete", "table", "inet", table], check=True)
    assert not limited.networks.is_up_to_date()
    limited.networks.rebuild()
    assert limited.networks.is_up_to_date()
    limited.networks.flood_limits = FloodLimits(connections_per_second=0, packets_per_second=0)
    limited.networks.rebuild()
    for address in (calm.address, six(calm.address)):
        assert received(limited, noisy, calm, 2000, address=address) == 2000, "0 means no limit"
    listed = subprocess.run(
        ["nft", "--json", "list", "table", "inet", table], capture_output=True, check=True
    )
    assert not any("limit" in str(each) for each in json.loads(listed.stdout)["nftables"])
