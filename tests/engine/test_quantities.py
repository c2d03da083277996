"""Traffic and snapshot sizes on a real engine: the kernel's counters, the pool's sizes."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.engine.conftest import MIB, NETWORKS, MachineMaker, launched
from tests.engine.sandbox import INSIDE_ADDRESS, OUTSIDE_ADDRESS, Sandbox

from teraflock.drivers.lxd.driver import Lxd
from teraflock.instance.driver import Machine

PORT = 7000
SINK = """
import socket
listener = socket.create_server(("0.0.0.0", 7000))
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    count = 0
    while part := connection.recv(1 << 20):
        count += len(part)
    connection.close()
"""
SEND = """
import socket, sys
connection = socket.create_connection((sys.argv[1], 7000), timeout=20)
for _ in range(int(sys.argv[2])):
    connection.sendall(bytes(1 << 20))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
print("sent")
"""
FETCH = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)
count = 0
while part := connection.recv(1 << 20):
    count += len(part)
print(count)
"""
SOURCE = """
import socket
listener = socket.create_server(("0.0.0.0", 22_022))
connection, _ = listener.accept()
for _ in range(8):
    connection.sendall(bytes(1 << 20))
"""


@pytest.fixture
def open_driver(driver: Lxd) -> Iterator[Lxd]:
    """Allow guests to reach the neighbour. There is no route beyond it."""
    driver.networks._way_out = True
    # The host is attached to this network, so it is closed by default.
    driver.networks.allow_out((f"{OUTSIDE_ADDRESS}/32",))
    yield driver
    driver.networks._way_out = False
    driver.networks.allow_out(())


@pytest.fixture
def neighbour(sandbox: Sandbox) -> Iterator[None]:
    """Start a server outside that accepts whatever is sent."""
    enter = ["nsenter", f"--target={sandbox.outside_pid}", "--net", "--"]
    sink = subprocess.Popen([*enter, sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True)
    assert sink.stdout
    assert sink.stdout.readline() == "ready\n"
    yield
    sink.kill()
    sink.wait()
    sink.stdout.close()


def test_only_traffic_that_leaves_the_host_is_counted(
    open_driver: Lxd, neighbour: None, a_machine: MachineMaker
) -> None:
    driver = open_driver
    one, two = a_machine(NETWORKS[0]), a_machine(NETWORKS[0])
    for machine in (one, two):
        launched(driver, machine)
    assert ran(driver, two, "sh", "-c", f"python3 -c '{SINK}' >/dev/null 2>&1 & sleep 1") == ""
    before = count(driver, one)
    assert ran(driver, one, "python3", "-c", SEND, two.address, "32") == "sent"
    assert count(driver, one) - before < MIB // 10, "traffic between guests of a project is free"
    before = count(driver, one)
    assert ran(driver, one, "python3", "-c", SEND, OUTSIDE_ADDRESS, "32") == "sent"
    sent = count(driver, one) - before
    assert 32 * MIB <= sent <= 32 * MIB * 1.02 + 32 * MIB * 60 / 1448, "within 2 %, including headers"
    assert count(driver, two) < MIB // 10


@pytest.mark.long("restarts guests and rebuilds tables")
def test_counters_survive_restarts_and_rebuilt_tables(
    open_driver: Lxd, neighbour: None, a_machine: MachineMaker
) -> None:
    driver, machine = open_driver, a_machine()
    launched(driver, machine)
    ran(driver, machine, "python3", "-c", SEND, OUTSIDE_ADDRESS, "4")
    first = driver.sent(machine.handle)
    assert first is not None
    driver.networks.rebuild()
    driver.stop(machine.handle, force=False)
    stopped = driver.sent(machine.handle)
    assert stopped is not None
    assert (stopped.epoch, stopped.bytes >= first.bytes) == (first.epoch, True)
    launched(driver, machine)
    again = driver.sent(machine.handle)
    assert again is not None
    assert (again.epoch, again.bytes >= stopped.bytes) == (first.epoch, True)
    driver.networks.drop_firewall()  # as after a reboot
    driver.hosts()
    anew = driver.sent(machine.handle)
    assert anew is not None
    assert anew.epoch != first.epoch
    assert anew.bytes < MIB
    driver.delete(machine.handle)
    assert driver.sent(machine.handle) is None
    driver.delete(machine.handle)


def test_responses_through_an_open_port_are_counted(
    driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker
) -> None:
    machine = a_machine()
    (port,) = machine.ports
    machine = a_machine(ports=(port, type(port)(port.host_port + 500, 22_022)))
    launched(driver, machine)
    ran(driver, machine, "sh", "-c", f"python3 -c '{SOURCE}' >/dev/null 2>&1 & sleep 1")
    before = count(driver, machine)
    fetched = sandbox.outside(sys.executable, "-c", FETCH, INSIDE_ADDRESS, str(machine.ports[1].host_port))
    assert fetched.stdout.strip() == str(8 * MIB)
    assert 8 * MIB <= count(driver, machine) - before <= 8 * MIB * 1.1


def test_snapshot_counts_data_since_the_previous_one(driver: Lxd, a_machine: MachineMaker) -> None:
    machine = a_machine()
    launched(driver, machine)

    def write(name: str, megabytes: int) -> None:
        ran(driver, machine, "dd", "if=/dev/urandom", f"of=/root/{name}", "bs=1M", f"count={megabytes}")

    write("a", 64)
    first = driver.snapshot(machine.handle, "snp_one")
    assert 64 * MIB <= first <= 72 * MIB
    assert driver.snapshot(machine.handle, "snp_one") == first, "a repeated call returns the same size"
    write("b", 16)
    second = driver.snapshot(machine.handle, "snp_two")
    assert 16 * MIB <= second <= 24 * MIB
    assert driver.snapshot(machine.handle, "snp_one") == first
    driver.restore(machine.handle, "snp_one")
    assert driver.snapshot(machine.handle, "snp_three") <= 2 * MIB, (
        "a disk that was just restored has no data of its own"
    )


def count(driver: Lxd, machine: Machine) -> int:
    counter = driver.sent(machine.handle)
    assert counter is not None
    return counter.bytes


def ran(driver: Lxd, machine: Machine, *command: str) -> str:
    answer = driver.run(machine.handle, command, stdin=b"", seconds_max=60)
    return answer.stdout.decode().strip()
