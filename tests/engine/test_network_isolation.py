"""Tenants cannot reach each other, the host, or the internet, except through what was opened."""

import json

from tests.engine.conftest import NETWORKS, MachineMaker, launched
from tests.engine.sandbox import INSIDE_ADDRESS, OUTSIDE_ADDRESS, Sandbox

from teraflock.drivers.lxd import kernel
from teraflock.drivers.lxd.driver import Lxd
from teraflock.instance.driver import Machine

CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1).close()
    print("open")
except ConnectionRefusedError:
    print("refused")
except OSError:
    print("silent")
"""


def test_what_a_guest_can_reach(driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker) -> None:
    one, two, stranger = a_machine(NETWORKS[0]), a_machine(NETWORKS[0]), a_machine(NETWORKS[1])
    for machine in (one, two, stranger):
        launched(driver, machine)

    def reaches(address: str, port: int) -> str:
        return ran(driver, one, "python3", "-c", CONNECT, address, str(port))

    assert reaches(two.address, 22) == "open", "guests of one project share a network"
    assert reaches(stranger.address, 22) == "silent"
    assert reaches(INSIDE_ADDRESS, stranger.ports[0].host_port) == "silent", (
        "not through its open port either"
    )
    assert reaches(INSIDE_ADDRESS, 8000) == "silent", "guests cannot reach the host's own ports"
    assert reaches(NETWORKS[1].gateway, 53) == "silent"
    assert reaches(NETWORKS[0].gateway, 53) == "open"
    assert reaches(OUTSIDE_ADDRESS, 22) == "silent", "there is no route out"
    ping = ("ping", "-c", "1", "-W", "1")
    assert "1 received" in ran(driver, one, *ping, two.address)
    assert "1 received" in ran(driver, one, *ping, NETWORKS[0].gateway)
    assert "0 received" in ran(driver, one, *ping, stranger.address)
    assert "0 received" in ran(driver, one, *ping, OUTSIDE_ADDRESS)
    driver.networks.drop_firewall()
    assert reaches(stranger.address, 22) == "open", "only our table stopped it"
    assert reaches(OUTSIDE_ADDRESS, 22) == "refused"
    driver.networks.rebuild()


def test_only_open_ports_are_reachable_from_outside(
    driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker
) -> None:
    machine = a_machine()
    launched(driver, machine)
    port = machine.ports[0].host_port

    def reaches(address: str, to: int) -> str:
        return sandbox.outside("python3", "-c", CONNECT, address, str(to)).stdout.strip()

    assert reaches(INSIDE_ADDRESS, port) == "open"
    assert reaches(machine.address, 22) == "silent", "although the neighbour has a route"
    driver.networks.drop_firewall()  # as after a reboot
    assert reaches(INSIDE_ADDRESS, port) == "refused"
    driver.hosts()
    assert reaches(INSIDE_ADDRESS, port) == "open", "the whole table is rebuilt from the engine's data"
    driver.hide(machine.handle)
    assert reaches(INSIDE_ADDRESS, port) == "refused"


def test_guests_cannot_spoof_addresses(driver: Lxd, a_machine: MachineMaker) -> None:
    honest, thief = a_machine(), a_machine()
    launched(driver, thief)
    driver.prepare(honest)
    ran(driver, thief, "ip", "address", "add", f"{honest.address}/20", "dev", "eth0")
    answer = ran(driver, thief, "ping", "-c", "1", "-W", "1", "-I", honest.address, honest.network.gateway)
    assert "0 received" in answer
    assert "1 received" in ran(driver, thief, "ping", "-c", "1", "-W", "1", honest.network.gateway)


def test_settings_of_bridges_that_isolation_needs(
    driver: Lxd, sandbox: Sandbox, a_machine: MachineMaker
) -> None:
    machine = a_machine()
    driver.prepare(machine)
    bridge = driver.networks._ours.bridge(machine.network.key)
    shown = sandbox.inside_command("ip", "-details", "-json", "link", "show", "dev", bridge).stdout
    assert json.loads(shown)[0]["linkinfo"]["info_data"]["no_linklocal_learn"] == 1
    # Other programs of the host may turn the filter off, and with it all walls inside a network.
    for each in kernel.BRIDGE_FILTERS:
        (kernel.SYSTEM / each).write_text("0")
        assert not driver.networks.is_up_to_date()
        driver.hosts()
        assert kernel.filters_bridges()
        assert driver.networks.is_up_to_date()


def test_guests_are_not_root_on_the_host(driver: Lxd, a_machine: MachineMaker) -> None:
    machine = a_machine()
    launched(driver, machine)
    inside, outside, _ = ran(driver, machine, "head", "-n1", "/proc/self/uid_map").split()
    assert inside == "0"
    assert int(outside) >= 100_000
    assert ran(driver, machine, "ls", "/dev/lxd") == "", "the engine does not answer guests"


def ran(driver: Lxd, machine: Machine, *command: str) -> str:
    answer = driver.run(machine.handle, command, stdin=b"", seconds_max=30)
    return answer.stdout.decode().strip()
