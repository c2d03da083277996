"""A joined host behind the API: instances run on it, also after its host program was killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.api.asking import SETTINGS, ApiServer
from tests.api.versions import older

from teraflock import __version__

LOOKS_MAX = 100


class Server(ApiServer):
    def __init__(self, home: Path) -> None:
        super().__init__(home, replace(SETTINGS, join_listen="127.0.0.1:0"))


class HostProgram:
    """`tera host join` and `tera host serve` in processes of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.pid_file = home / "host" / "host.pid"

    def tera(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TERA_HOME": str(self.home)}
        command = [sys.executable, "-m", "teraflock", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def join(self, invited: Any, port: int) -> subprocess.CompletedProcess[str]:
        word = f"{invited['token']}@{invited['server']}#{invited['fingerprint']}"
        listen = ("--listen", f"127.0.0.1:{port}")
        return self.tera("host", "join", word, "--simulate", "1x2xH100", *listen)

    def kill(self) -> None:
        if self.pid_file.exists():
            os.kill(int(self.pid_file.read_text()), signal.SIGKILL)
            self.pid_file.unlink()


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "server")
    yield server
    server.close()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[HostProgram]:
    program = HostProgram(tmp_path / "host")
    yield program
    program.kill()


def until(server: Server, target: str, **wanted: object) -> Any:
    for _ in range(LOOKS_MAX):
        server.cloud.loops.drift.turn()
        server.settle()
        found = server.ok("GET", target)
        if all(found.get(name) == value for name, value in wanted.items()):
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def test_instances_run_on_a_joined_host(server: Server, program: HostProgram, free_port: int) -> None:
    server.ok("POST", "/v1/images", {"name": "base", "recipe": "base"})
    invited = server.ok("POST", "/v1/host-invitations", {"name": "lab2"})
    done = program.join(invited, free_port)
    assert done.returncode == 0, done.stderr
    assert "joined: lab2 at 127.0.0.1" in done.stdout
    server.cloud.synchronise_sites()
    server.settle()
    host = server.ok("GET", "/v1/hosts/lab2")
    assert (host["state"], host["site"], len(host["gpus"]), host["simulated"]) == ("ready", "lab2", 2, True)
    server.ok("POST", "/v1/instances", {"name": "far", "shape": {"gpu": "H100", "gpus": 1}})
    assert until(server, "/v1/instances/far", state="running")["host"] == "lab2"
    program.kill()
    until(server, "/v1/instances/far", state="away")
    again = program.join(invited, free_port)
    assert "already a host" in again.stdout, again.stderr
    until(server, "/v1/instances/far", state="running")
    refused = server.ask("DELETE", "/v1/hosts/lab2", server.operator)
    assert (refused.status, refused.code) == (409, "conflict")
    server.ok("DELETE", "/v1/instances/far")
    until(server, "/v1/hosts/lab2", vcpus_held=0)
    server.ok("PATCH", "/v1/hosts/lab2", {"state": "draining"})
    server.ok("DELETE", "/v1/hosts/lab2")
    assert "lab2" not in [each["name"] for each in server.ok("GET", "/v1/hosts")["items"]]
    left = program.tera("host", "leave", "--yes")
    assert "no longer a host" in left.stderr, left
    assert "has not joined" in program.tera("host", "serve").stderr


def test_a_lost_host_is_removed_and_cleaned_when_it_joins_again(
    server: Server, program: HostProgram, free_port: int
) -> None:
    server.ok("POST", "/v1/images", {"name": "base", "recipe": "base"})
    assert (
        program.join(server.ok("POST", "/v1/host-invitations", {"name": "lab2"}), free_port).returncode == 0
    )
    server.cloud.synchronise_sites()
    server.settle()
    server.ok("POST", "/v1/instances", {"name": "far", "shape": {"gpu": "H100", "gpus": 1}})
    until(server, "/v1/instances/far", state="running")
    refused = server.ask("DELETE", "/v1/hosts/lab2?lost=true", server.operator)
    assert (refused.status, refused.code) == (409, "conflict")
    program.kill()
    until(server, "/v1/instances/far", state="away")
    long_ago = int((time.time() - 600) * 1e6)
    server.cloud.database.write(lambda tx: tx.run("UPDATE host SET seen_at_us = :us", us=long_ago))
    lost = server.ok("DELETE", "/v1/hosts/lab2?lost=true")
    assert lost == {"instances": 1, "volumes": 0, "volumes_recovered": 0}
    far = server.ok("GET", "/v1/instances/far")
    assert (far["state"], "lost for good" in far["problem"]) == ("failed", True)
    server.cloud.synchronise_sites()
    assert program.tera("host", "leave", "--yes").returncode == 0
    again = server.ok("POST", "/v1/host-invitations", {"name": "lab2"})
    assert program.join(again, free_port).returncode == 0
    server.cloud.synchronise_sites()
    until(server, "/v1/hosts/lab2", state="ready")
    assert list(server.cloud.engines.at("lab2").sightings()) == [], "the old guest is removed"


def test_purge_removes_the_host_program(server: Server, program: HostProgram, free_port: int) -> None:
    invited = server.ok("POST", "/v1/host-invitations", {"name": "lab3"})
    assert program.join(invited, free_port).returncode == 0
    pid = int(program.pid_file.read_text())
    (program.home / "host" / "host.json").write_text("{")  # even if it is damaged
    done = program.tera("purge", "--yes")
    assert done.returncode == 0, done.stderr
    assert not (program.home / "host").exists()
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()
    assert "Nothing to remove" in program.tera("purge", "--yes").stderr


def test_leave_works_with_a_damaged_configuration(program: HostProgram) -> None:
    folder = program.home / "host"
    folder.mkdir(parents=True)
    for name in ("host.json", "host.key"):
        (folder / name).write_text("{")
    assert "`tera host leave`" in program.tera("host", "serve").stderr
    done = program.tera("host", "leave", "--yes")
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []


def test_a_host_of_another_version_is_refused_and_upgraded(
    server: Server, program: HostProgram, free_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.ok("POST", "/v1/images", {"name": "base", "recipe": "base"})
    invited = server.ok("POST", "/v1/host-invitations", {"name": "lab4"})
    assert program.join(invited, free_port).returncode == 0
    server.cloud.synchronise_sites()
    server.settle()
    server.ok("POST", "/v1/instances", {"name": "far", "shape": {"gpu": "H100", "gpus": 1}})
    until(server, "/v1/instances/far", state="running")
    program.kill()
    monkeypatch.setenv("PYTHONPATH", str(older(tmp_path / "older", "0.0.1")))
    word = f"t@{invited['server']}#{'0' * 64}"
    assert "already a host" in program.tera("host", "join", word, "--simulate", "1x2xH100").stdout
    until(server, "/v1/instances/far", state="away")
    problem = server.ok("GET", "/v1/sites/lab4")["problem"]
    assert problem == f"The host runs version 0.0.1, and the server runs {__version__}"
    pid = program.pid_file.read_text()
    done = server.ok("POST", "/v1/hosts/lab4/upgrade")
    assert done == {"host": "lab4", "before": "0.0.1", "version": __version__}
    assert program.pid_file.read_text() == pid, "the process stays the same"
    until(server, "/v1/instances/far", state="running")
    assert server.ok("POST", "/v1/hosts/lab4/upgrade")["before"] == __version__
    program.kill()
    assert program.tera("host", "join", word, "--simulate", "1x2xH100").returncode == 0
    assert server.ok("POST", "/v1/hosts/lab4/upgrade")["before"] == __version__, "also after a restart"
