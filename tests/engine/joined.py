"""Several hosts on one machine: a test engine each, in its own namespaces, on one wire. The server is on the first.

one   203.0.113.1, with the server      two   203.0.113.2      three   203.0.113.3
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.api.asking import SETTINGS, ApiServer
from tests.engine.conftest import IMAGES
from tests.engine.sandbox import NoSandbox, Sandbox, mark_cgroups

from teraflock.base.clock import SystemClock
from teraflock.drivers.lxd.interfaces import ID
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient

ADDRESSES = {"one": "203.0.113.1", "two": "203.0.113.2", "three": "203.0.113.3"}
LOOKS_MAX = 400
ENCRYPTS = shutil.which("wg") is not None and shutil.which("wireguard-go") is not None
SHAPE = {"vcpus": 1, "ram_bytes": 512 << 20, "disk_bytes": 2 << 30}


@contextmanager
def three_sandboxes(prefix: str) -> Iterator[dict[str, Sandbox]]:
    """Three machines on one wire. The test is skipped where they cannot be made."""
    made: dict[str, Sandbox] = {}
    try:
        for name in ADDRESSES:
            made[name] = Sandbox(f"{prefix}-{name}-")
        wired(made)
        yield made
    except NoSandbox as reason:
        pytest.skip(str(reason))
    finally:
        for sandbox in made.values():
            sandbox.close()


def wired(sandboxes: dict[str, Sandbox]) -> None:
    """Connect the hosts to one switch, and give each its own folders for locks and ids, as on separate machines.

    The switch is in the network of the first host's neighbour, where no firewall is.
    """
    _at_switch(sandboxes, "ip", "link", "add", "switch", "type", "bridge")
    _at_switch(sandboxes, "ip", "link", "set", "switch", "up")
    for name, sandbox in sandboxes.items():
        peer = ("peer", "name", "wire", "netns", str(sandbox.inside_pid))
        _at_switch(sandboxes, "ip", "link", "add", f"to-{name}", "type", "veth", *peer)
        _at_switch(sandboxes, "ip", "link", "set", f"to-{name}", "master", "switch", "up")
        for words in (
            ("ip", "address", "add", f"{ADDRESSES[name]}/24", "dev", "wire"),
            ("ip", "link", "set", "wire", "up"),
            ("mkdir", "-p", "/var/lib/teraflock"),
            ("mount", "-t", "tmpfs", "tmpfs", "/var/lib/teraflock"),
            ("mount", "-t", "tmpfs", "tmpfs", "/run/lock"),
            ("mkdir", "-p", "/run/wireguard"),
            ("mount", "-t", "tmpfs", "tmpfs", "/run/wireguard"),
            ("mkdir", "-p", "/run/netns", "/run/teraflock"),
            ("mount", "-t", "tmpfs", "tmpfs", "/run/netns"),
            ("mount", "-t", "tmpfs", "tmpfs", "/run/teraflock"),
        ):
            done = sandbox.inside_command(*words)
            assert done.returncode == 0, (words, done.stderr)


def clustered(sandboxes: dict[str, Sandbox]) -> None:
    """Make one LXD cluster of the hosts' engines, as an operator would."""
    clients = {name: LxdClient(sandbox.daemon.socket_path) for name, sandbox in sandboxes.items()}
    first = clients["one"]
    certificate = ""
    for name, client in clients.items():
        address = f"{ADDRESSES[name]}:8443"
        client.put(body={"config": {"core.https_address": address}})
        body: dict[str, object] = {"server_name": name, "enabled": True}
        if certificate:
            token: Any = first.begin("cluster", "members", body={"server_name": name}).metadata
            words = {each: token[each] for each in ("fingerprint", "addresses", "secret")}
            secret = b64encode(msgspec.json.encode({"server_name": name, **words})).decode()
            body |= {"server_address": address, "cluster_address": f"{ADDRESSES['one']}:8443"}
            body |= {"cluster_certificate": certificate, "cluster_password": secret, "member_config": []}
        client.put("cluster", body=body)
        certificate = certificate or first.get()["environment"]["certificate"]
        sandboxes[name].member = name
    for client in clients.values():
        client.close()


def cut(sandboxes: dict[str, Sandbox], name: str, *, is_cut: bool) -> None:
    """Pull the cable of a host out of the switch, or put it back."""
    _at_switch(sandboxes, "ip", "link", "set", f"to-{name}", "down" if is_cut else "up")


def _at_switch(sandboxes: dict[str, Sandbox], *words: str) -> None:
    done = sandboxes["one"].outside(*words)
    assert done.returncode == 0, (words, done.stderr)


class HostProgram:
    """`tera host join` and the host program on one of the hosts."""

    def __init__(self, sandbox: Sandbox, name: str, folder: Path) -> None:
        self.sandbox = sandbox
        self.name = name
        self.home = folder / name
        self.variables: tuple[str, ...] = ()
        images = self.home / "host" / "engine" / "images"
        images.parent.mkdir(parents=True)
        images.symlink_to(IMAGES)

    def tera(self, *words: str) -> subprocess.CompletedProcess[str]:
        socket = f"TERA_LXD_SOCKET={self.sandbox.daemon.socket_path}"
        variables = (
            f"TERA_HOME={self.home}",
            socket,
            "TERA_MOULD_STOCK=0",
            "TERA_POOL_GB=10",
            *self.variables,
        )
        return self.sandbox.inside_command("env", *variables, sys.executable, "-m", "teraflock", *words)

    def join(self, invited: Any) -> subprocess.CompletedProcess[str]:
        word = f"{invited['token']}@{invited['server']}#{invited['fingerprint']}"
        return self.tera("host", "join", word, "--without-gpus")

    def start(self) -> None:
        """Start the host program of a host that has joined."""
        done = self.tera("host", "join", f"t@{ADDRESSES['one']}:8733#{'0' * 64}", "--without-gpus")
        assert done.returncode == 0, done.stderr

    def kill(self) -> None:
        """Kill the host program. Its process id is of the host's own processes."""
        pid = (self.home / "host" / "host.pid").read_text().strip()
        self.sandbox.inside_command("kill", "-9", pid)

    def log(self) -> str:
        path = self.home / "host" / "host.log"
        return path.read_text() if path.exists() else ""


class ClockAhead:
    """The time of the system, and a part that the test adds."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return SystemClock().now() + self.ahead


class Server(ApiServer):
    """The server, in the network of the first host: the caller is there."""

    def __init__(self, home: Path) -> None:
        settings = replace(SETTINGS, engine="none", join_listen="0.0.0.0:8733", join_address=ADDRESSES["one"])
        self.clock = ClockAhead()
        super().__init__(home, settings, clock=self.clock)

    def turn(self) -> None:
        """One turn of every loop."""
        self.cloud.synchronise_sites()
        loops = self.cloud.loops
        loops.beat()
        loops.hosts.turn()
        loops.drift.turn()
        loops.images.turn()
        for instance in loops.instances.lease():
            loops.instances.advance(instance)
        loops.moves.turn()
        loops.drains.turn()
        loops.networks.turn()
        loops.walls.turn()
        loops.fabric.turn()
        loops.names.turn()

    def until(self, target: str, **wanted: object) -> Any:
        found = None
        for _ in range(LOOKS_MAX):
            self.turn()
            answer = self.ask("GET", target, self.operator)
            found = answer.json
            if answer.status == 200 and all(found.get(name) == value for name, value in wanted.items()):
                return found
            time.sleep(0.02)
        raise AssertionError(found)

    def inside(self, name: str, *command: str) -> str:
        """What a command in an instance writes."""
        body = {"command": list(command)}
        return str(self.ok("POST", f"/v1/instances/{name}/exec", body)["stdout"])

    def pings(self, name: str, address: str, size: int = 56) -> bool:
        words = ("ping", "-c", "1", "-W", "2", "-M", "do", "-s", str(size), address)
        return "1 received" in self.inside(name, *words)


class Ground:
    def __init__(self, server: Server, sandboxes: dict[str, Sandbox], folder: Path) -> None:
        self.server = server
        self.sandboxes = sandboxes
        self.installation = server.cloud.installed.installation_id
        self.folder = folder
        self.programs: dict[str, HostProgram] = {}

    def instance(self, name: str) -> Any:
        return self.server.ok("GET", f"/v1/instances/{name}")

    def launch(self, name: str, host: str, **more: object) -> Any:
        self.server.ok("POST", "/v1/instances", {"name": name, "host": host, "shape": SHAPE, **more})
        return self.server.until(f"/v1/instances/{name}", state="running")

    def check(self, names: str) -> None:
        """Every instance runs once, where its row says, and no address is held twice."""
        rows = [self.instance(name) for name in names]
        assert [row["state"] for row in rows] == ["running"] * len(rows)
        assert running(self.sandboxes, self.installation) == sorted((row["id"], row["host"]) for row in rows)
        addresses = [row["private_address"] for row in rows]
        assert len(set(addresses)) == len(addresses), addresses
        verdict = self.server.ok("POST", "/v1/bill/verify")
        assert verdict["sound"], verdict


def join(ground: Ground) -> None:
    server = ground.server
    for name, sandbox in ground.sandboxes.items():
        mark(sandbox, ground.installation)
        body = {"name": name, "address": ADDRESSES[name], "trusted_wire": not ENCRYPTS}
        ground.programs[name] = program = HostProgram(sandbox, name, ground.folder)
        done = program.join(server.ok("POST", "/v1/host-invitations", body))
        assert done.returncode == 0, done.stderr
    for name in ground.sandboxes:
        host = server.until(f"/v1/hosts/{name}", state="ready")
        assert (host["simulated"], host["address"]) == (False, ADDRESSES[name]), ground.programs[name].log()
    server.ok("POST", "/v1/images", {"name": "base", "recipe": "base"})
    server.until("/v1/images/base", state="ready")


def mark(sandbox: Sandbox, installation_id: str) -> None:
    mark_cgroups(sandbox.folder, project(sandbox, installation_id))


def project(sandbox: Sandbox, installation_id: str) -> str:
    """The engine's project with our guests."""
    return Names(installation_id.partition("_")[2], sandbox.member).project


def running(sandboxes: dict[str, Sandbox], installation_id: str) -> list[tuple[str, str]]:
    """Instance and host of every guest that an engine shows as running."""
    found = []
    for name, sandbox in sandboxes.items():
        for each in guests(sandbox, installation_id):
            if each["status"] == "Running":
                found.append((str(each["config"][ID]), name))
    return sorted(found)


def guests(sandbox: Sandbox, installation_id: str) -> list[Any]:
    engine = LxdClient(sandbox.daemon.socket_path, project=project(sandbox, installation_id))
    try:
        found: list[Any] = engine.get("instances", recursion=2)
    finally:
        engine.close()
    return [each for each in found if ID in each["config"]]


def power_off(sandbox: Sandbox, program: HostProgram, installation_id: str) -> None:
    """Kill a host with all that runs on it."""
    pids = [each["state"]["pid"] for each in guests(sandbox, installation_id) if each["state"]["pid"]]
    program.kill()
    kill_daemon(sandbox)
    for pid in pids:
        sandbox.inside_command("kill", "-9", str(pid))


def kill_daemon(sandbox: Sandbox) -> None:
    pid = sandbox.daemon.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
