"""Several hosts on one machine: a test engine each, in its own namespaces, on one wire. The server is on the first.

one   203.0.113.1, with the server      two   203.0.113.2
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from tests.api.asking import SETTINGS, ApiServer
from tests.engine.conftest import IMAGES
from tests.engine.house import House, mark_cgroups

ADDRESSES = {"one": "203.0.113.1", "two": "203.0.113.2"}
LOOKS_MAX = 400


def wired(one: House, two: House) -> None:
    """Connect two hosts, and give each its own folders for locks and ids, as on two machines."""
    enter = ["nsenter", f"--target={one.inside_pid}", "--net", "--"]
    link = ["ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", str(two.inside_pid)]
    subprocess.run([*enter, *link], check=True)
    for house, address in zip((one, two), ADDRESSES.values(), strict=True):
        for words in (
            ("ip", "address", "add", f"{address}/24", "dev", "wire"),
            ("ip", "link", "set", "wire", "up"),
            ("mkdir", "-p", "/var/lib/teraflock"),
            ("mount", "-t", "tmpfs", "tmpfs", "/var/lib/teraflock"),
            ("mount", "-t", "tmpfs", "tmpfs", "/run/lock"),
            ("mkdir", "-p", "/run/wireguard"),
            ("mount", "-t", "tmpfs", "tmpfs", "/run/wireguard"),
        ):
            done = house.inside_command(*words)
            assert done.returncode == 0, (words, done.stderr)


class HostProgram:
    """`tera host join` and the host program on one of the hosts."""

    def __init__(self, house: House, name: str, folder: Path) -> None:
        self.house = house
        self.name = name
        self.home = folder / name
        images = self.home / "host" / "engine" / "images"
        images.parent.mkdir(parents=True)
        images.symlink_to(IMAGES)

    def tera(self, *words: str) -> subprocess.CompletedProcess[str]:
        socket = f"TERA_LXD_SOCKET={self.house.daemon.socket_path}"
        variables = (f"TERA_HOME={self.home}", socket, "TERA_MOULD_STOCK=0", "TERA_POOL_GB=10")
        return self.house.inside_command("env", *variables, sys.executable, "-m", "teraflock", *words)

    def join(self, invited: Any) -> subprocess.CompletedProcess[str]:
        word = f"{invited['token']}@{invited['server']}#{invited['fingerprint']}"
        return self.tera("host", "join", word, "--without-gpus")

    def kill(self) -> None:
        """Kill the host program. Its process id is of the host's own processes."""
        pid = (self.home / "host" / "host.pid").read_text().strip()
        self.house.inside_command("kill", "-9", pid)

    def log(self) -> str:
        path = self.home / "host" / "host.log"
        return path.read_text() if path.exists() else ""


class Server(ApiServer):
    """The server, in the network of the first host: the caller is there."""

    def __init__(self, home: Path) -> None:
        settings = replace(SETTINGS, engine="none", join_listen="0.0.0.0:8733", join_address=ADDRESSES["one"])
        super().__init__(home, settings)
        self.operator = self.cloud.at.operator_key.read_text().strip()

    def ok(self, method: str, target: str, body: object = None) -> Any:
        answer = self.ask(method, target, self.operator, body=body)
        assert answer.status < 300, answer
        return answer.json if answer.body else None

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
        loops.networks.turn()
        loops.walls.turn()
        loops.fabric.turn()

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


def mark(house: House, installation_id: str) -> None:
    mark_cgroups(house.folder, f"tera-{installation_id.partition('_')[2]}")


def kill_daemon(house: House) -> None:
    pid = house.daemon.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
