"""Two real hosts join one server: one network, walls across hosts, and a host that dies and returns."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.house import House, NoHouse
from tests.engine.joined import ADDRESSES, HostProgram, Server, kill_daemon, mark, wired

from teraflock.network.fabric import MTU_ENCRYPTED, MTU_PLAIN

ENCRYPTS = shutil.which("wg") is not None and shutil.which("wireguard-go") is not None


@pytest.fixture
def houses(base_image: Path) -> Iterator[dict[str, House]]:
    made: dict[str, House] = {}
    try:
        for name in ADDRESSES:
            made[name] = House(f"joined-{name}-")
        wired(made["one"], made["two"])
        yield made
    except NoHouse as reason:
        pytest.skip(str(reason))
    finally:
        for house in made.values():
            house.close()


@pytest.mark.long("two real engines: a minute of waiting for disks")
def test_two_hosts_share_networks_and_walls(houses: dict[str, House], tmp_path: Path) -> None:
    with houses["one"].inside():
        server = Server(tmp_path / "server")
        try:
            programs = joined(server, houses, tmp_path)
            share_a_network(server)
            survive(server, houses["two"], programs["two"])
        finally:
            server.close()


def joined(server: Server, houses: dict[str, House], folder: Path) -> dict[str, HostProgram]:
    programs = {}
    for name, house in houses.items():
        mark(house, server.cloud.installed.installation_id)
        body = {"name": name, "address": ADDRESSES[name], "trusted_wire": not ENCRYPTS}
        programs[name] = HostProgram(house, name, folder)
        done = programs[name].join(server.ok("POST", "/v1/host-invitations", body))
        assert done.returncode == 0, done.stderr
    for name in houses:
        host = server.until(f"/v1/hosts/{name}", state="ready")
        assert (host["simulated"], host["address"]) == (False, ADDRESSES[name]), programs[name].log()
    server.ok("POST", "/v1/images", {"name": "base", "recipe": "base"})
    server.until("/v1/images/base", state="ready")
    return programs


def share_a_network(server: Server) -> None:
    shape = {"vcpus": 1, "ram_bytes": 512 << 20, "disk_bytes": 2 << 30}
    for name, host in (("a", "one"), ("b", "two")):
        server.ok("POST", "/v1/instances", {"name": name, "host": host, "shape": shape})
    a, b = (server.until(f"/v1/instances/{name}", state="running") for name in "ab")
    assert (a["site"], b["site"]) == ("one", "two")
    server.turn()
    largest = (MTU_ENCRYPTED if ENCRYPTS else MTU_PLAIN) - 28
    for name, other in (("a", b), ("b", a)):
        assert server.inside(name, "cat", "/sys/class/net/eth0/mtu").strip() == str(largest + 28)
        assert server.pings(name, other["private_address"])
        assert server.pings(name, other["private_address"], largest)
        assert not server.pings(name, other["private_address"], largest + 1), (
            "no packet is lost without a notice"
        )
    # an address of another instance
    server.inside("b", "ip", "address", "add", "10.128.0.99/20", "dev", "eth0")
    spoofed = server.inside("b", "ping", "-c", "1", "-W", "1", "-I", "10.128.0.99", a["private_address"])
    assert "0 received" in spoofed
    # walls
    server.ok("POST", "/v1/security-groups", {"name": "closed"})
    server.ok("PUT", "/v1/security-groups/closed/instances/b")
    server.ok("DELETE", "/v1/security-groups/default/instances/b")
    server.turn()
    assert not server.pings("a", b["private_address"])
    server.ok("PUT", "/v1/security-groups/default/instances/b")
    server.turn()
    assert server.pings("a", b["private_address"])


def survive(server: Server, house: House, program: HostProgram) -> None:
    """Kill the engine and the host program of one host: its instance is away, then the same guest is back."""
    address = server.ok("GET", "/v1/instances/b")["private_address"]
    boot = server.inside("b", "cat", "/proc/1/stat").split()[21]
    program.kill()
    kill_daemon(house)
    server.until("/v1/instances/b", state="away")
    assert server.pings("a", address), "guests and links outlive the programs"
    house.daemon.ensure()
    again = program.tera("host", "join", f"t@{ADDRESSES['one']}:8733#{'0' * 64}", "--without-gpus")
    assert again.returncode == 0, again.stderr
    server.until("/v1/instances/b", state="running")
    assert server.inside("b", "cat", "/proc/1/stat").split()[21] == boot
    assert server.pings("a", address)
    server.ok("DELETE", "/v1/instances/a")
    server.ok("DELETE", "/v1/instances/b")
    server.until("/v1/hosts/two", vcpus_held=0)
    server.until("/v1/hosts/one", vcpus_held=0)
