"""IPv6 between guests of a real engine: addresses and names without asking a router, the same walls as for IPv4, and
nothing beyond the networks of projects."""

import contextlib
import socket
from collections.abc import Iterator

import pytest
from tests.engine.conftest import NETWORKS, MachineMaker, launched
from tests.engine.inside import python, ran
from tests.engine.sandbox import INSIDE_ADDRESS, Sandbox

from teraflock.drivers.lxd.driver import Lxd
from teraflock.instance.driver import Machine
from teraflock.network.ipv6 import RANGE6, four, six, six_network
from teraflock.network.security_group.model import Direction, GroupId, Protocol, Rule
from teraflock.network.walls import Walls

OUTSIDE6, INSIDE6 = "2001:db8::2", "2001:db8::1"
HOST_PORT = 9006
ADVERTISE = """
import socket, struct, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("eth0", 0))
own = bytes.fromhex(open("/sys/class/net/eth0/address").read().strip().replace(":", ""))
last = struct.unpack("!4H", bytes([own[0] ^ 2, *own[1:3], 255, 254, *own[3:]]))
near = "fe80::" + ":".join(f"{each:x}" for each in last)
every = socket.inet_pton(socket.AF_INET6, "ff02::1")
def send(source, body, target=every, hardware="333300000001"):
    source = socket.inet_pton(socket.AF_INET6, source)
    pseudo = source + target + struct.pack("!IHBB", len(body), 0, 0, 58) + body
    total = sum(struct.unpack(f"!{len(pseudo) // 2}H", pseudo))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    body = body[:2] + struct.pack("!H", ~total & 0xFFFF) + body[4:]
    head = bytes.fromhex(hardware) + own + b"\\x86\\xdd" + struct.pack("!IHBB", 6 << 28, len(body), 58, 255)
    link.send(head + source + target + body)
for source in ("fe80::bad", near):
    prefix = struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 3600, 3600, 0) + socket.inet_pton(socket.AF_INET6, "fd00:bad::")
    send(source, struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0) + prefix)
victim, target = sys.argv[1:3]  # tell the victim that the other's address is here
claim = struct.pack("!BBHI", 136, 0, 0, 0x60000000) + socket.inet_pton(socket.AF_INET6, target) + b"\\2\\1" + own
mac = sys.argv[3].replace(":", "")
for source in (sys.argv[4], target, near):
    send(source, claim, socket.inet_pton(socket.AF_INET6, victim), mac)
    send(source, claim)
"""
CONNECT = """
import socket, sys
used = socket.socket(socket.AF_INET6)
used.settimeout(1)
try:
    used.connect((sys.argv[1], int(sys.argv[2]), 0, socket.if_nametoindex("eth0")))
    print("open")
except ConnectionRefusedError:
    print("refused")
except OSError:
    print("silent")
"""


@pytest.fixture
def trio(driver: Lxd, a_machine: MachineMaker) -> tuple[Machine, Machine, Machine]:
    """Two guests of one network, and one of another."""
    machines = a_machine(NETWORKS[0]), a_machine(NETWORKS[0]), a_machine(NETWORKS[1])
    for machine in machines:
        launched(driver, machine)
    return machines


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """A service of the host on all its addresses."""
    with socket.socket(socket.AF_INET6) as used:
        used.bind(("::", HOST_PORT))
        used.listen()
        yield


def reaches(driver: Lxd, machine: Machine, target: str, port: int = 22) -> str:
    return python(driver, machine, CONNECT, target, str(port))


def pings(driver: Lxd, machine: Machine, target: str) -> bool:
    return "1 received" in ran(driver, machine, "ping", "-6", "-c", "1", "-W", "1", "-I", "eth0", target)


def near(driver: Lxd, machine: Machine) -> str:
    """The address that a guest uses for questions about neighbours."""
    shown = ran(driver, machine, "ip", "-6", "-o", "address", "show", "dev", "eth0", "scope", "link")
    return shown.split("inet6 ")[1].split("/")[0]


def test_guests_have_addresses_and_names_and_no_router(
    driver: Lxd, trio: tuple[Machine, Machine, Machine]
) -> None:
    one, two, far = trio
    shown = ran(driver, one, "ip", "-6", "-o", "address", "show", "dev", "eth0", "scope", "global")
    assert [each.split()[3] for each in shown.splitlines()] == [f"{six(one.address)}/64"]
    assert "default" not in ran(driver, one, "ip", "-6", "route", "show")
    found = ran(driver, one, "getent", "ahostsv6", two.hostname).split()
    assert found[0] == six(two.address)
    assert pings(driver, one, two.hostname)
    assert reaches(driver, one, two.hostname) == "open"
    assert pings(driver, one, six(one.network.gateway)), "the gateway answers"
    assert reaches(driver, one, six(far.address)) == "silent", "not peered"
    assert four(six(two.address)) == two.address


def test_walls_hold_for_both_families_and_change_live(
    driver: Lxd, trio: tuple[Machine, Machine, Machine]
) -> None:
    one, two, far = trio
    a, b = GroupId("sgr_a"), GroupId("sgr_b")
    out = Rule(direction=Direction.OUT, protocol=Protocol.ANY, peer="0.0.0.0/0")

    def load(*rules: Rule, peered: bool = False) -> None:
        both = frozenset({(NETWORKS[0].subnet, NETWORKS[1].subnet)}) if peered else frozenset()
        stations = {one.address: (a,), far.address: (a,), two.address: (b,)}
        driver.enforce(Walls(groups={a: (out,), b: (out, *rules)}, stations=stations, peers=both))

    def ssh(peer: str) -> Rule:
        return Rule(direction=Direction.IN, protocol=Protocol.TCP, port_first=22, port_last=22, peer=peer)

    for rules, four_opens, six_opens in (
        ((), False, False),
        ((ssh("0.0.0.0/0"),), True, True),
        ((ssh("::/0"),), False, True),
        ((ssh("fd00::/8"),), False, True),
        ((ssh("2001:db8::/32"),), False, False),
        ((ssh(f"{one.address}/32"),), True, True),
        ((ssh(six_network(f"{one.address}/32")),), False, True),
        ((ssh(f"{far.address}/32"),), False, False),
        ((ssh(a),), True, True),
    ):
        load(*rules)
        assert (reaches(driver, one, six(two.address)) == "open") == six_opens, rules
        mapped = f"::ffff:{two.address}"
        assert (reaches(driver, one, mapped) == "open") == four_opens, rules
    load(ssh(a), peered=True)
    assert reaches(driver, far, six(two.address)) == "open", "peered networks are routed"
    assert reaches(driver, two, six(far.address)) == "silent"
    load(ssh(a))
    assert reaches(driver, far, six(two.address)) == "silent"


def test_a_guest_is_heard_only_as_itself_and_only_inside(
    driver: Lxd, sandbox: Sandbox, trio: tuple[Machine, Machine, Machine]
) -> None:
    one, two, far = trio
    bridge = driver.networks._ours.bridge(NETWORKS[0].key)
    for words in (("inside", INSIDE6, "uplink"), ("outside", OUTSIDE6, "eth0")):
        command = ("ip", "address", "replace", f"{words[1]}/64", "dev", words[2], "nodad")
        (sandbox.inside_command if words[0] == "inside" else sandbox.outside)(*command)
    sandbox.outside("ip", "-6", "route", "replace", str(RANGE6), "via", INSIDE6)
    shown = sandbox.inside_command("ip", "-6", "-o", "address", "show", "dev", bridge, "scope", "link").stdout
    host_near = shown.split("inet6 ")[1].split("/")[0]
    hardware = ran(driver, two, "cat", "/sys/class/net/eth0/address")
    ran(driver, one, "ip", "-6", "route", "replace", "default", "via", six(one.network.gateway))
    ran(driver, two, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/eth0/accept_ra")

    def reached() -> set[str]:
        ran(driver, two, "ip", "-6", "neighbour", "flush", "all")
        pings(driver, two, six(two.network.gateway))
        python(driver, one, ADVERTISE, six(two.address), six(two.network.gateway), hardware, six(one.address))
        own = ran(driver, one, "cat", "/sys/class/net/eth0/address")
        found = set()
        if own in ran(driver, two, "ip", "-6", "neighbour", "show", six(two.network.gateway)):
            found.add("claim")
        if "fd00:bad" in ran(driver, two, "ip", "-6", "route", "show"):
            found.add("advertisement")
        for name, target, port in (
            ("near", near(driver, two), 22),
            ("host", six(one.network.gateway), HOST_PORT),
            ("host's other gateway", six(far.network.gateway), HOST_PORT),
            ("host near", host_near, HOST_PORT),
            ("uplink", INSIDE6, HOST_PORT),
            ("outside", OUTSIDE6, 22),
            ("6to4", "2002:c633:6402::1", 22),
            ("mapped host", f"::ffff:{INSIDE_ADDRESS}", HOST_PORT),
        ):
            if reaches(driver, one, target, port) != "silent":
                found.add(name)
        if "1 received" in sandbox.outside("ping", "-6", "-c", "1", "-W", "1", six(two.address)).stdout:
            found.add("from outside")
        return found

    ran(driver, one, "ip", "address", "add", "fd3e:9a51:c870:1::a80:1063/64", "dev", "eth0", "nodad")
    assert not pings(driver, two, "fd3e:9a51:c870:1::a80:1063"), "an address that it gave itself"
    with listening():
        assert reached() == set()
        ours = driver.networks._ours
        for table in (("bridge", ours.guard_table), ("inet", ours.table), ("inet", ours.walls_table)):
            sandbox.inside_command("nft", "delete", "table", *table)
        without = reached()
        missed = {"claim", "advertisement", "near", "host", "host near"} - without
        assert missed == set(), "only our tables stopped it"
        driver.hosts()
        ran(driver, two, "ip", "-6", "route", "flush", "proto", "ra")
        for address in ("fd00:bad::/64",):
            ran(driver, two, "sh", "-c", f"ip -6 route flush {address}; ip -6 address flush dynamic dev eth0")
        assert reached() == set(), "the tables are restored automatically"


def test_the_bridge_gets_its_address_back(
    driver: Lxd, sandbox: Sandbox, trio: tuple[Machine, Machine, Machine]
) -> None:
    bridge = driver.networks._ours.bridge(NETWORKS[0].key)
    gateway = six(NETWORKS[0].gateway)
    sandbox.inside_command("ip", "address", "delete", f"{gateway}/64", "dev", bridge)
    assert not driver.networks.is_up_to_date()
    driver.hosts()
    assert gateway in sandbox.inside_command("ip", "-6", "address", "show", "dev", bridge).stdout
    assert sandbox.inside_command("sysctl", "-n", "net.ipv6.conf.all.forwarding").stdout.strip() == "0"


def test_guests_of_an_earlier_version_get_ipv6_while_they_run(
    driver: Lxd,
    sandbox: Sandbox,
    trio: tuple[Machine, Machine, Machine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two, _ = trio

    def inside(pid: int, *command: str, stdin: str) -> None:
        """The engine's numbers of processes are those of its own namespace."""
        for line in stdin.splitlines():
            sandbox.inside_command("nsenter", f"--target={pid}", "--net", "--", command[0], *line.split())

    monkeypatch.setattr(driver.networks, "_inside", inside)
    engine = driver.networks._engine
    where, project = ("instances", one.id.replace("_", "-")), driver.networks._ours.project
    engine.patch(*where, body={"config": {"user.gateway": one.network.gateway}}, project=project)
    ran(driver, one, "ip", "address", "delete", f"{six(one.address)}/64", "dev", "eth0")
    assert not pings(driver, two, six(one.address))
    driver.networks.rebuild()
    assert pings(driver, two, six(one.address))
    kept = engine.get(*where, project=project)["config"]["user.gateway"]
    assert kept.startswith(one.network.gateway)
    assert six(one.address) in kept
