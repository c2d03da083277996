"""The members of an LXD cluster join as hosts: they share a cluster, but no host depends on another."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.joined import (
    ADDRESSES,
    ENCRYPTS,
    SHAPE,
    Ground,
    HostProgram,
    Server,
    clustered,
    guests,
    join,
    power_off,
    project,
    running,
    three_sandboxes,
)
from tests.engine.sandbox import OUTSIDE_ADDRESS, Sandbox

from teraflock.drivers.lxd.rest import LxdClient
from teraflock.network.fabric import MTU_ENCRYPTED, MTU_PLAIN
from teraflock.reconcile.moving import MOVE_AFTER


@pytest.fixture
def members(base_image: Path) -> Iterator[dict[str, Sandbox]]:
    with three_sandboxes("member") as made:
        clustered(made)
        yield made


@pytest.mark.long("three real engines in a cluster")
def test_members_of_a_cluster_are_hosts(members: dict[str, Sandbox], tmp_path: Path) -> None:
    with members["one"].inside():
        server = Server(tmp_path / "server")
        ground = Ground(server, members, tmp_path)
        try:
            join(ground)
            talk_across_members(ground)
            lose_a_member(ground)
            leave_the_cluster_as_it_was(ground)
        finally:
            server.close()


def talk_across_members(ground: Ground) -> None:
    """Each instance is on the member that placement chose, sees only its own host's engine, and has names."""
    server = ground.server
    for name, host in (("a", "one"), ("b", "two"), ("c", "three")):
        body = {"name": name, "host": host, "shape": SHAPE, "restart_policy": "elsewhere"}
        server.ok("POST", "/v1/instances", body)
    a, b, c = (server.until(f"/v1/instances/{name}", state="running") for name in "abc")
    server.turn()
    for name, sandbox in ground.sandboxes.items():
        (guest,) = guests(sandbox, ground.installation)
        assert guest["location"] == name
    largest = (MTU_ENCRYPTED if ENCRYPTS else MTU_PLAIN) - 28
    for name, other in (("a", b), ("b", c), ("c", a)):
        assert server.pings(name, other["private_address"], largest)
        assert not server.pings(name, other["private_address"], largest + 1)
        assert other["private_address"] in server.inside(name, "getent", "ahostsv4", other["name"])
    reach_the_internet(ground.sandboxes["two"], server, "b")
    ground.check("abc")


def reach_the_internet(sandbox: Sandbox, server: Server, name: str) -> None:
    """With an address of the host: the other side knows no way to that of the guest."""
    address = "1.2.3.4"
    for words in (("address", "add", address, "dev", "lo"), ("route", "delete", "default")):
        assert sandbox.outside("ip", *words).returncode == 0
    done = sandbox.inside_command("ip", "route", "add", address, "via", OUTSIDE_ADDRESS)
    assert done.returncode == 0, done.stderr
    assert server.pings(name, address)


def lose_a_member(ground: Ground) -> None:
    """The others go on, even with a new network. Its instance is created elsewhere, and its leftovers are removed."""
    server, lost = ground.server, ground.sandboxes["three"]
    power_off(lost, ground.programs["three"], ground.installation)
    server.until("/v1/instances/c", state="away")
    server.ok("POST", "/v1/networks", {"name": "new"})
    ground.launch("d", "two", networks=["new"])
    server.ok("PATCH", "/v1/hosts/one", {"state": "draining"})  # so that it moves to the other one
    server.clock.ahead += MOVE_AFTER
    moved = server.until("/v1/instances/c", state="running")
    assert moved["host"] == "two"
    server.ok("PATCH", "/v1/hosts/one", {"state": "ready"})
    lost.daemon.ensure()
    ground.programs["three"].start()
    server.until("/v1/hosts/three", state="ready")
    for _ in range(400):
        if not guests(lost, ground.installation):
            break
        server.turn()
    ground.check("abcd")


def leave_the_cluster_as_it_was(ground: Ground) -> None:
    """A host that leaves removes only what is its own, and the last one also the common pool."""
    server = ground.server
    for name in "abcd":
        server.ok("DELETE", f"/v1/instances/{name}")
    for name in ADDRESSES:
        server.until(f"/v1/hosts/{name}", vcpus_held=0)
    assert running(ground.sandboxes, ground.installation) == []
    engine = LxdClient(ground.sandboxes["one"].daemon.socket_path)
    for left, (name, program) in zip((2, 1, 0), ground.programs.items(), strict=True):
        server.ok("PATCH", f"/v1/hosts/{name}", {"state": "draining"})
        server.ok("DELETE", f"/v1/hosts/{name}")
        _purge(program)
        names = [project(each, ground.installation) for each in ground.sandboxes.values()]
        assert len(set(engine.names("projects")) & set(names)) == left
        assert (engine.names("storage-pools") != []) == (left > 0)
        links = ground.sandboxes[name].inside_command("ip", "-brief", "link").stdout
        assert not [line for line in links.splitlines() if line.startswith(("tf", "tv", "tw"))], links
    engine.close()


def _purge(program: HostProgram) -> None:
    done = program.tera("purge", "--yes")
    assert done.returncode == 0, (done.stdout, done.stderr)
