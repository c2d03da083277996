"""Three real hosts join one server: one network, walls, drain, upgrade, and a host that dies and returns."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.api.versions import older
from tests.engine.joined import (
    ADDRESSES,
    ENCRYPTS,
    SHAPE,
    Ground,
    Server,
    cut,
    guests,
    join,
    kill_daemon,
    power_off,
    running,
    three_sandboxes,
)
from tests.engine.sandbox import Sandbox

from teraflock import __version__
from teraflock.drivers.lxd import balancers
from teraflock.drivers.lxd.names import LINK_PREFIX, WIRE_PREFIX
from teraflock.network.fabric import MTU_ENCRYPTED, MTU_PLAIN
from teraflock.reconcile.balancers import BalancerLoop
from teraflock.reconcile.moving import MOVE_AFTER


@pytest.fixture
def sandboxes(base_image: Path) -> Iterator[dict[str, Sandbox]]:
    with three_sandboxes("joined") as made:
        yield made


@pytest.mark.long("three real engines: a minute of waiting for disks")
def test_three_hosts_live_and_fail_together(sandboxes: dict[str, Sandbox], tmp_path: Path) -> None:
    with sandboxes["one"].inside():
        server = Server(tmp_path / "server")
        ground = Ground(server, sandboxes, tmp_path)
        try:
            join(ground)
            share_a_network(ground)
            peer_two_projects(ground.server)
            balance_across_hosts(ground.server)
            outlive_programs(ground)
            drain(ground)
            upgrade(ground)
            lose_a_host(ground)
            leave(ground)
        finally:
            server.close()


def share_a_network(ground: Ground) -> None:
    server = ground.server
    for name, host in (("a", "one"), ("b", "two"), ("c", "three")):
        body = {"name": name, "host": host, "shape": SHAPE, "restart_policy": "elsewhere"}
        server.ok("POST", "/v1/instances", body)
    a, b, c = (server.until(f"/v1/instances/{name}", state="running") for name in "abc")
    assert (a["site"], b["site"], c["site"]) == ("one", "two", "three")
    server.turn()
    largest = (MTU_ENCRYPTED if ENCRYPTS else MTU_PLAIN) - 28
    for name, other in (("a", b), ("b", c), ("c", a)):
        assert server.inside(name, "cat", "/sys/class/net/eth0/mtu").strip() == str(largest + 28)
        assert server.pings(name, other["private_address"])
        assert server.pings(name, other["private_address"], largest)
        assert not server.pings(name, other["private_address"], largest + 1), "no packet is lost silently"
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
    assert not server.pings("c", b["private_address"])
    server.ok("PUT", "/v1/security-groups/default/instances/b")
    server.turn()
    assert server.pings("a", b["private_address"])
    ground.check("abc")


def peer_two_projects(server: Server) -> None:
    """An instance of another project on the other host: reached, and known by name, while the networks are peered."""
    shape = {"vcpus": 1, "ram_bytes": 512 << 20, "disk_bytes": 2 << 30}
    server.ok("POST", "/v1/projects", {"name": "speech"})
    theirs = "project=speech"
    server.ok("POST", f"/v1/instances?{theirs}", {"name": "c", "host": "two", "shape": shape})
    address = server.until(f"/v1/instances/c?{theirs}", state="running")["private_address"]
    near = server.ok("GET", "/v1/instances/a")["private_address"]
    server.ok("POST", f"/v1/security-groups/default/rules?{theirs}", PING)
    server.ok("POST", "/v1/security-groups/default/rules", PING)
    server.turn()
    assert not server.pings("a", address), "they are not peered"
    server.ok("PUT", "/v1/networks/default/peerings/speech/default")
    server.ok("PUT", f"/v1/networks/default/peerings/default/default?{theirs}")
    server.turn()
    server.turn()
    assert server.pings("a", address)
    found = server.inside("a", "ping", "-c", "1", "-W", "2", "c.speech.internal")
    assert "1 received" in found, found
    names = server.inside("a", "getent", "ahostsv4", "b.default.internal")
    assert names.split()[0] == server.ok("GET", "/v1/instances/b")["private_address"]
    body = {"command": ["ping", "-c", "1", "-W", "2", near]}
    back = server.ok("POST", f"/v1/instances/c/exec?{theirs}", body)
    assert "1 received" in back["stdout"]
    server.ok("DELETE", "/v1/networks/default/peerings/speech/default")
    server.turn()
    assert not server.pings("a", address), "the peering ended"
    server.ok("DELETE", f"/v1/instances/c?{theirs}")
    server.turn()


def balance_across_hosts(server: Server) -> None:
    """A balancer on one host for an instance on the other. It moves when its host is drained, with its address."""
    if balancers.program() is None:
        return
    loop = BalancerLoop(server.cloud.loops.around, lambda sealed, id: sealed)
    order = {"name": "front", "port": 2222, "target_port": 22, "instances": ["a", "b"]}
    made = server.ok("POST", "/v1/balancers", order)

    def is_answered() -> None:
        """The instance on the second host gets an answer, also while the other backend is not one."""
        for _ in range(BALANCER_LOOKS):
            server.turn()
            loop.turn()
            said = server.inside("b", "bash", "-c", f"timeout 3 head -c 4 < /dev/tcp/{made['address']}/2222")
            if said == "SSH-":
                return
        raise AssertionError(server.ok("GET", "/v1/balancers/front"))

    is_answered()
    server.ok("POST", "/v1/balancers/front/backends/remove", {"instances": ["a"]})
    is_answered()
    server.ok("PATCH", "/v1/hosts/one", {"state": "draining"})
    loop.turn()
    server.ok("PATCH", "/v1/hosts/one", {"state": "ready"})  # before its instances move, too
    with server.cloud.database.read() as tx:
        ((site, address),) = tx.all("SELECT site, address FROM balancer")
    assert (site in ("two", "three"), address) == (True, made["address"])
    is_answered()
    near = server.inside("a", "bash", "-c", f"timeout 3 head -c 4 < /dev/tcp/{made['address']}/2222")
    assert near == "SSH-", "from the other host, too"
    server.ok("DELETE", "/v1/balancers/front")
    loop.turn()
    with server.cloud.database.read() as tx:
        assert tx.all("SELECT id FROM balancer") == []


BALANCER_LOOKS = 30
PING = {"direction": "in", "protocol": "icmp", "peer": "10.128.0.0/9"}


def outlive_programs(ground: Ground) -> None:
    """Kill the engine and the host program of one host: its instance is away, then the same guest is back."""
    server, program, sandbox = ground.server, ground.programs["two"], ground.sandboxes["two"]
    address, began = ground.instance("b")["private_address"], boot(server, "b")
    program.kill()
    kill_daemon(sandbox)
    server.until("/v1/instances/b", state="away")
    assert server.pings("a", address), "guests and links outlive the programs"
    sandbox.daemon.ensure()
    program.start()
    server.until("/v1/instances/b", state="running")
    assert boot(server, "b") == began
    assert server.pings("a", address)


def drain(ground: Ground) -> None:
    """Instances that may move leave a drained host, which stays drained while its program restarts."""
    server = ground.server
    server.inside("c", "sh", "-c", "echo drained > /root/work")
    at = server.clock.now().isoformat()
    server.ok("PATCH", "/v1/hosts/three", {"state": "draining", "drain_at": at})
    server.until("/v1/hosts/three", state="draining", vcpus_held=0)
    moved = server.until("/v1/instances/c", state="running")
    assert moved["host"] in ("one", "two")
    assert server.inside("c", "cat", "/root/work") == "drained\n", "its disk was copied"
    server.turn()
    assert guests(ground.sandboxes["three"], ground.installation) == []
    assert server.pings("a" if moved["host"] == "two" else "b", moved["private_address"])
    ground.programs["three"].kill()
    server.until("/v1/hosts/three", state="away")
    ground.programs["three"].start()
    server.until("/v1/hosts/three", state="draining")
    server.ok("PATCH", "/v1/hosts/three", {"state": "ready"})
    ground.check("abc")


def upgrade(ground: Ground) -> None:
    """A host of another version is refused, and upgraded while its instances run."""
    server, program = ground.server, ground.programs["three"]
    ground.launch("d", "three", restart_policy="elsewhere")
    began = boot(server, "d")
    program.kill()
    program.variables = (f"PYTHONPATH={older(ground.folder / 'older', '0.0.1')}",)
    program.start()
    server.until("/v1/instances/d", state="away")
    assert "runs version 0.0.1" in server.ok("GET", "/v1/sites/three")["problem"]
    assert server.ok("POST", "/v1/hosts/three/upgrade")["before"] == "0.0.1"
    server.until("/v1/instances/d", state="running")
    assert boot(server, "d") == began
    assert server.ok("POST", "/v1/hosts/three/upgrade")["before"] == __version__
    ground.check("abcd")


def lose_a_host(ground: Ground) -> None:
    """A host dies with its guests and its network. Its instance starts elsewhere, and only there."""
    server, sandbox, program = ground.server, ground.sandboxes["three"], ground.programs["three"]
    before = ground.instance("d")
    server.inside("d", "sh", "-c", "echo copied > /root/work; sync")
    server.cloud.copying.turn()
    server.inside("d", "sh", "-c", "echo later > /root/work")
    power_off(sandbox, program, ground.installation)
    cut(ground.sandboxes, "three", is_cut=True)
    server.until("/v1/instances/d", state="away")
    server.clock.ahead += MOVE_AFTER + timedelta(minutes=1)
    for name in "abc":  # nobody watched meanwhile
        server.until(f"/v1/instances/{name}", state="running")
    after = server.until("/v1/instances/d", state="running")
    assert after["host"] in ("one", "two")
    assert server.inside("d", "cat", "/root/work") == "copied\n", "it starts from its last copy"
    assert after["private_address"] != before["private_address"], "the lost host may still use the old one"
    server.turn()
    assert server.pings("d", ground.instance("a" if after["host"] == "two" else "b")["private_address"])
    sandbox.daemon.ensure()  # its guests start again by themselves
    cut(ground.sandboxes, "three", is_cut=False)
    program.start()
    server.until("/v1/hosts/three", state="ready")
    assert guests(sandbox, ground.installation) == [], "the old copy is removed before the host is used"
    ground.check("abcd")


def leave(ground: Ground) -> None:
    server, sandbox = ground.server, ground.sandboxes["three"]
    for name in "abcd":
        server.ok("DELETE", f"/v1/instances/{name}")
    for name in ADDRESSES:
        server.until(f"/v1/hosts/{name}", vcpus_held=0)
    assert running(ground.sandboxes, ground.installation) == []
    server.cloud.copying.turn()
    left = [id for each in server.cloud.engines for id in each.images() if id.startswith("cpy")]
    assert left == [], "copies are removed with their instances"
    server.ok("PATCH", "/v1/hosts/three", {"state": "draining"})
    server.ok("DELETE", "/v1/hosts/three")
    done = ground.programs["three"].tera("host", "leave", "--yes")
    assert done.returncode == 0, done.stderr
    links = sandbox.inside_command("ip", "-brief", "link").stdout
    assert not [line for line in links.splitlines() if line.startswith((LINK_PREFIX, WIRE_PREFIX))], links
    verdict = server.ok("POST", "/v1/bill/verify")
    assert verdict["sound"], verdict


def boot(server: Server, name: str) -> str:
    """When its first process started."""
    return server.inside(name, "cat", "/proc/1/stat").split()[21]
