"""Attacks of a hostile tenant on the network: spoofed addresses, closed networks, and names of other projects.

Where a protection can be removed, the tests also prove that the attack then succeeds.
"""

import json
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from tests.engine.conftest import NETWORKS, MachineMaker, launched
from tests.engine.inside import python, ran
from tests.engine.sandbox import OUTSIDE_ADDRESS, Sandbox

from teraflock.drivers.lxd import names, probe
from teraflock.drivers.lxd.driver import Lxd
from teraflock.instance.driver import Machine

PROBE = Path(probe.__file__).read_bytes()


SEND = """
import socket, struct, sys
def mac(text): return bytes.fromhex(text.replace(":", ""))
own = open("/sys/class/net/eth0/address").read().strip()
kind, source_mac, source_ip, target_ip = sys.argv[1:5]
source = mac(own if source_mac == "own" else source_mac)
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("eth0", 0))
broadcast = b"\\xff" * 6
if kind == "arp":
    body = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 2, source, socket.inet_aton(source_ip), broadcast,
                       socket.inet_aton(target_ip))
    frame = broadcast + mac(own) + struct.pack("!H", 0x0806) + body
elif kind == "udp":
    data = b"tera-spoof"
    udp = struct.pack("!HHHH", 4444, 4444, 8 + len(data), 0) + data
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton(source_ip),
                     socket.inet_aton(target_ip))
    total = sum(struct.unpack("!10H", ip)); total = (total >> 16) + (total & 0xffff); total += total >> 16
    ip = ip[:10] + struct.pack("!H", ~total & 0xffff) + ip[12:]
    frame = broadcast + source + struct.pack("!H", 0x0800) + ip + udp
elif kind == "ra":
    ends = "fe80" + "00" * 13 + "01" + "ff02" + "00" * 13 + "01"
    advertisement = bytes.fromhex("6000000000103aff" + ends + "86000000400007080000000000000000")
    frame = mac("33:33:00:00:00:01") + source + struct.pack("!H", 0x86dd) + advertisement
elif kind == "vlan":
    frame = broadcast + source + struct.pack("!HHH", 0x8100, 7, 0x0800) + b"\\x45" + b"\\0" * 40
for _ in range(3):
    link.send(frame)
"""
LISTEN = """
import socket, sys, time
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind(("eth0", 0))
print("listening", flush=True)
until, seen = time.monotonic() + float(sys.argv[1]), set()
while (left := until - time.monotonic()) > 0:
    link.settimeout(left)
    try:
        frame, place = link.recvfrom(2048)
    except OSError:
        break
    if place[2] == socket.PACKET_OUTGOING:
        continue
    seen.add(frame[6:12].hex(":") + " " + frame[12:14].hex() + (" spoof" if b"tera-spoof" in frame else ""))
print("\\n".join(sorted(seen)))
"""


@pytest.fixture
def neighbour(driver: Lxd, a_machine: MachineMaker) -> Machine:
    """A guest in red's own project: on one bridge only the guard separates guests."""
    machine = a_machine(NETWORKS[0])
    launched(driver, machine)
    return machine


def heard(driver: Lxd, listener: Machine, sender: Machine, *frames: tuple[str, ...]) -> str:
    ran(driver, listener, "sh", "-c", "cat > /tmp/listen.py", stdin=LISTEN.encode())
    ran(driver, sender, "sh", "-c", "cat > /tmp/send.py", stdin=SEND.encode())
    ran(driver, listener, "sh", "-c", "rm -f /tmp/heard; python3 /tmp/listen.py 3 > /tmp/heard 2>&1 &")
    ran(driver, listener, "sh", "-c", "until grep -q listening /tmp/heard; do sleep 0.05; done")
    for frame in frames:
        ran(driver, sender, "python3", "/tmp/send.py", *frame)
    return ran(driver, listener, "sh", "-c", "wait; sleep 3.2; cat /tmp/heard")


def test_guests_cannot_spoof_even_without_the_engine_filters(
    driver: Lxd, sandbox: Sandbox, red: Machine, neighbour: Machine
) -> None:
    lie, gateway = "02:00:00:aa:bb:cc", NETWORKS[0].gateway
    sandbox.inside_command("nft", "delete", "table", "bridge", "lxd")  # the engine's own table, if it has one
    own = names.hardware_address(driver.networks._ours.installation, red.address)
    frames = (
        ("udp", "own", "8.8.8.8", neighbour.address),
        ("udp", "own", gateway, neighbour.address),
        ("udp", lie, red.address, neighbour.address),
        ("arp", "own", gateway, neighbour.address),
        ("arp", lie, red.address, neighbour.address),
        ("ra", "own", "0.0.0.0", "0.0.0.0"),
        ("vlan", "own", "0.0.0.0", "0.0.0.0"),
    )
    said = heard(driver, neighbour, red, *frames)
    assert "spoof" not in said
    assert lie not in said
    assert "86dd" not in said
    assert "8100" not in said
    honest = heard(driver, neighbour, red, ("udp", "own", red.address, neighbour.address))
    assert f"{own} 0800 spoof" in honest, "traffic with its own address arrives"
    ours = driver.networks._ours
    sandbox.inside_command("nft", "delete", "table", "bridge", ours.guard_table)
    sandbox.inside_command("nft", "delete", "table", "inet", ours.walls_table)
    assert "spoof" in heard(driver, neighbour, red, frames[0]), "only our tables stopped it"
    driver.hosts()
    assert "spoof" not in heard(driver, neighbour, red, frames[0]), "the table is restored automatically"


@pytest.fixture
def a_world(sandbox: Sandbox, driver: Lxd) -> Iterator[str]:
    """Open a way out through the neighbour, which also acts as a credentials service and the operator's
    network."""
    world, inner = "203.0.113.7", "192.168.77.7"
    for address in (f"{world}/32", "169.254.169.254/32", f"{inner}/32"):
        sandbox.outside("ip", "address", "add", address, "dev", "lo")
    sandbox.inside_command("ip", "route", "replace", "default", "via", OUTSIDE_ADDRESS)
    server = subprocess.Popen(
        ["nsenter", f"--target={sandbox.outside_pid}", "--net", "--", "python3", "-m", "http.server", "8099"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    driver.networks._way_out = True
    driver.networks.rebuild()
    yield world
    driver.networks._way_out = False
    driver.networks.allow_out(())
    server.kill()
    server.wait()
    sandbox.inside_command("ip", "route", "delete", "default")


def reached(driver: Lxd, machine: Machine, *targets: str) -> dict[str, str]:
    found = json.loads(ran(driver, machine, "python3", "-", *targets, stdin=PROBE))
    return {target.rpartition(":")[0]: said for target, said in found["reach"].items()}


def test_guests_reach_the_internet_but_not_operator_networks(
    driver: Lxd, sandbox: Sandbox, a_world: str, red: Machine
) -> None:
    targets = [f"{each}:8099" for each in (a_world, "169.254.169.254", "192.168.77.7", OUTSIDE_ADDRESS)]
    closed = "refused: EHOSTUNREACH"
    said = reached(driver, red, *targets)
    assert said == {
        a_world: "allowed", "169.254.169.254": closed, "192.168.77.7": closed, OUTSIDE_ADDRESS: closed,
    }  # fmt: skip
    driver.networks.allow_out(("192.168.77.0/24",))
    said = reached(driver, red, *targets)
    assert said["192.168.77.7"] == "allowed"
    assert said["169.254.169.254"] == said[OUTSIDE_ADDRESS] == closed
    driver.networks.drop_firewall()
    assert reached(driver, red, targets[1])["169.254.169.254"] == "allowed", "only our tables stopped it"
    driver.hosts()
    assert driver.networks.allowed_out() == ("192.168.77.0/24",), "the engine stores the allowed networks"
    assert reached(driver, red, *targets[1:3]) == {"169.254.169.254": closed, "192.168.77.7": "allowed"}


LOOK_UP = """
import socket, sys
for name in sys.argv[1:]:
    try:
        print(name, socket.gethostbyname(name))
    except OSError:
        print(name, "unknown")
"""


def test_dns_serves_only_names_of_the_same_project(
    driver: Lxd, sandbox: Sandbox, red: Machine, neighbour: Machine, blue: Machine
) -> None:
    host = Path("/etc/hosts").read_text().split()
    name_of_host = next((word for word in host if word.isalpha() and word != "localhost"), "vm")
    asked = (
        neighbour.hostname,
        f"{neighbour.hostname}.alpha.internal",
        blue.hostname,
        f"{blue.hostname}.beta.internal",
    )
    said = dict(line.split() for line in python(driver, red, LOOK_UP, *asked, name_of_host).splitlines())
    assert said[asked[0]] == said[asked[1]] == neighbour.address
    assert said[asked[2]] == said[asked[3]] == said[name_of_host] == "unknown"
    driver.networks.drop_firewall()  # as after a reboot
    driver.hosts()
    assert python(driver, red, LOOK_UP, asked[0]) == f"{asked[0]} {neighbour.address}"
    driver.delete(neighbour.handle)
    assert python(driver, red, LOOK_UP, asked[0]) == f"{asked[0]} unknown"
    outside = sandbox.outside("python3", "-c", DIG, NETWORKS[0].gateway, red.hostname)
    assert outside.stdout.strip() == "silent", "the DNS server answers only guests"


def test_dns_says_nothing_about_the_network_of_the_operator(driver: Lxd, red: Machine) -> None:
    own = IPv4Address(red.address).reverse_pointer
    asked = {own: "12 1", "5.0.0.10.in-addr.arpa": "12 1", "servers.bind": "16 3", "version.bind": "16 3"}
    words = [word for name, kind in asked.items() for word in (name, *kind.split())]
    said = dict(
        zip(asked, python(driver, red, QUESTIONS, NETWORKS[0].gateway, *words).splitlines(), strict=True)
    )
    assert said.pop(own) == "0 1", "its own name"
    assert said.pop("5.0.0.10.in-addr.arpa") == "3 0", "answered here: the operator's server was not asked"
    assert [each.partition(" ")[2] for each in said.values()] == ["0", "0"]


QUESTIONS = """
import socket, struct, sys
server, *words = sys.argv[1:]
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.settimeout(10)
for name, kind, family in zip(words[::3], words[1::3], words[2::3]):
    labels = b"".join(bytes([len(each)]) + each.encode() for each in name.split("."))
    query = struct.pack("!6H", 1, 256, 1, 0, 0, 0) + labels + b"\\0" + struct.pack("!2H", int(kind), int(family))
    asking.sendto(query, (server, 53))
    answer = asking.recv(512)
    print(answer[3] & 15, int.from_bytes(answer[6:8], "big"))
"""
DIG = """
import socket, struct, sys
name = sys.argv[2].encode()
query = struct.pack("!6H", 1, 256, 1, 0, 0, 0) + bytes([len(name)]) + name + b"\\0" + struct.pack("!2H", 1, 1)
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.settimeout(1)
asking.sendto(query, (sys.argv[1], 53))
try:
    asking.recv(512)
    print("answered")
except OSError:
    print("silent")
"""
