"""Guests have no IPv6: whatever they send with it reaches nobody, and only our table is the reason."""

from tests.engine.conftest import NETWORKS, MachineMaker, launched
from tests.engine.inside import python, ran
from tests.engine.sandbox import Sandbox

from teraflock.drivers.lxd.driver import Lxd
from teraflock.instance.driver import Machine

ADVERTISE = """
import socket, struct
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("eth0", 0))
own = bytes.fromhex(open("/sys/class/net/eth0/address").read().strip().replace(":", ""))
source, every = socket.inet_pton(socket.AF_INET6, "fe80::bad"), socket.inet_pton(socket.AF_INET6, "ff02::1")
prefix = struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 3600, 3600, 0) + socket.inet_pton(socket.AF_INET6, "fd00:bad::")
body = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + prefix
pseudo = source + every + struct.pack("!IHBB", len(body), 0, 0, 58) + body
total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
while total >> 16:
    total = (total & 0xFFFF) + (total >> 16)
body = body[:2] + struct.pack("!H", ~total & 0xFFFF) + body[4:]
frame = bytes.fromhex("333300000001") + own + b"\\x86\\xdd" + struct.pack("!IHBB", 6 << 28, len(body), 58, 255)
for _ in range(3):
    link.send(frame + source + every + body)
"""
CONNECT = """
import socket, sys
used = socket.socket(socket.AF_INET6)
used.settimeout(1)
try:
    used.connect((sys.argv[1], 22, 0, socket.if_nametoindex("eth0")))
    print("open")
except ConnectionRefusedError:
    print("refused")
except OSError:
    print("silent")
"""


class Pair:
    """Two guests of one project with IPv6 addresses that they gave themselves."""

    def __init__(self, driver: Lxd, sandbox: Sandbox, one: Machine, other: Machine) -> None:
        self.driver, self.sandbox, self.one, self.other = driver, sandbox, one, other
        for number, machine in enumerate((one, other), start=1):
            for kind in ("all", "default", "eth0"):
                self.inside(
                    machine, "sh", "-c", f"echo 0 > /proc/sys/net/ipv6/conf/{kind}/disable_ipv6; true"
                )
            self.inside(machine, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/eth0/accept_ra; true")
            for address in (f"fe80::{number}", f"fd00:1::{number}"):
                self.inside(machine, "ip", "address", "add", f"{address}/64", "dev", "eth0", "nodad")

    def inside(self, machine: Machine, *command: str) -> str:
        return ran(self.driver, machine, *command)

    def reached(self) -> set[str]:
        """What `one` reaches with IPv6, and whether the other believes its router advertisements."""
        gate = self.sandbox.inside_command(
            "ip", "-6", "address", "show", "dev", self.bridge, "scope", "link"
        ).stdout
        host = gate.split("inet6 ")[1].split("/")[0] if "inet6 " in gate else "fe80::99"
        found = set()
        for name, address in (("link", "fe80::2"), ("local", "fd00:1::2"), ("host", host)):
            if "1 received" in self.inside(
                self.one, "ping", "-6", "-c", "1", "-W", "1", "-I", "eth0", address
            ):
                found.add(f"ping {name}")
            if python(self.driver, self.one, CONNECT, address) != "silent":
                found.add(f"tcp {name}")
        python(self.driver, self.one, ADVERTISE)
        if "fd00:bad" in self.inside(self.other, "ip", "-6", "route", "show"):
            found.add("advertisement")
        return found

    @property
    def bridge(self) -> str:
        return self.driver.networks._ours.bridge(NETWORKS[0].key)


def test_nothing_passes_with_ipv6(driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker) -> None:
    machines = a_machine(NETWORKS[0]), a_machine(NETWORKS[0])
    for machine in machines:
        launched(driver, machine)
    pair = Pair(driver, sandbox, *machines)
    assert pair.reached() == set()
    ours = driver.networks._ours
    for table in (("bridge", ours.guard_table), ("inet", ours.table), ("inet", ours.walls_table)):
        sandbox.inside_command("nft", "delete", "table", *table)
    sandbox.inside_command("nft", "delete", "table", "bridge", "lxd")
    without = pair.reached()
    assert {"ping link", "tcp link", "advertisement"} <= without, "only our tables stopped it"
    driver.hosts()
    assert pair.reached() - {"advertisement"} == set(), "the tables are restored automatically"
