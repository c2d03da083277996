"""`tera up`, `down` and `purge`, also after interruptions."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.long import sampled
from tests.story.cloud import Cloud, free_port

CUT_OFF = """
import os, sys
from pathlib import Path
from teraflock.app.installation.places import Places
from teraflock.app.installation.up import up
up(Places(Path(sys.argv[1])), lambda phase: os._exit(9) if phase.startswith(sys.argv[2]) else None)
"""


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(tmp_path / "home")
    yield cloud
    cloud.run("down")


def servers_of(home: Path) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            is_server = b"serve" in (path / "cmdline").read_bytes().split(b"\0")
            environment = (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if is_server and f"TERA_HOME={home}".encode() in environment:
            found.append(int(path.name))
    return found


@pytest.mark.parametrize(
    "phase", sampled(["server", "engine", "key", "host"], every=4, because="`up` again and again")
)
def test_interrupted_up_can_be_repeated(cloud: Cloud, phase: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CUT_OFF, str(cloud.home), phase], env=cloud.environment(100), check=False
    )
    assert done.returncode == 9
    assert "SIMULATED" in cloud.ok("up").out
    assert cloud.ok("ps", "--json").json == []
    assert len(servers_of(cloud.home)) == 1


def test_lost_files_are_created_again(cloud: Cloud) -> None:
    cloud.ok("up")
    for name in ("cloud/operator.key", "connection.json", "cloud/server.pid"):
        (cloud.home / name).unlink()
    assert "is already running" in cloud.ok("up").out
    assert cloud.ok("whoami", "--json").json["is_operator"] is True
    assert len(servers_of(cloud.home)) == 1


def test_up_starts_a_killed_server_again(cloud: Cloud) -> None:
    cloud.ok("up")
    cloud.ok("launch", "--name", "kept", "--wait")
    os.kill(servers_of(cloud.home)[0], signal.SIGKILL)
    assert "cannot be reached" in cloud.fails("ps").err
    cloud.ok("up")
    assert [each["name"] for each in cloud.ok("ps", "--json").json] == ["kept"]


def test_down_stops_and_up_restores_everything(cloud: Cloud) -> None:
    cloud.ok("up")
    cloud.ok("launch", "--name", "kept", "--wait")
    assert "Server stopped" in cloud.ok("down").out
    assert servers_of(cloud.home) == []
    assert "The server was not running" in cloud.ok("down").out
    assert "make up" in cloud.fails("ps").hint
    cloud.more = {"HOME": cloud.more["HOME"]}  # the second time no setting is needed: it is stored
    assert "SIMULATED" in cloud.ok("up").out
    assert [each["name"] for each in cloud.ok("ps", "--json").json] == ["kept"]


def test_purge_removes_only_what_was_created(cloud: Cloud) -> None:
    cloud.ok("offers", "--limit", "1")
    (cloud.home / "hosts.json").write_text("[]")
    theirs = {path.name for path in cloud.home.iterdir()}
    cloud.ok("up")
    cloud.ok("launch", "--name", "web")
    assert cloud.fails("purge").code == 2
    assert servers_of(cloud.home) != []
    cloud.ok("purge", "--yes")
    assert servers_of(cloud.home) == []
    assert {path.name for path in cloud.home.iterdir()} == theirs
    assert "Nothing to remove" in cloud.ok("purge", "--yes").err


def test_port_in_use_is_reported(tmp_path: Path, cloud: Cloud) -> None:
    cloud.ok("up")
    other = Cloud(tmp_path / "other" / "home", cloud.port)
    refused = other.fails("up")
    assert "Another program already answers" in refused.err
    assert "TERA_LISTEN" in refused.hint
    other.more["TERA_LISTEN"] = f"127.0.0.1:{free_port()}"
    other.run("down")


def test_connection_to_another_server_is_kept(cloud: Cloud) -> None:
    cloud.home.mkdir()
    (cloud.home / "connection.json").write_text(json.dumps({"server": "http://192.0.2.1:8372", "key": "k"}))
    assert "still uses http://192.0.2.1:8372" in cloud.ok("up").out
    cloud.ok("purge", "--yes")
    assert json.loads((cloud.home / "connection.json").read_text())["key"] == "k"


def test_two_ups_at_once_start_one_server(cloud: Cloud) -> None:
    starts = [cloud.start("up") for _ in range(2)]
    codes = sorted(process.wait(60) for process in starts)
    for process in starts:
        process.communicate()
    assert codes[0] == 0
    assert len(servers_of(cloud.home)) == 1


def test_commands_without_a_server_have_a_hint(cloud: Cloud) -> None:
    for words in (["ps"], ["launch"], ["whoami"], ["delete", "x", "--yes"], ["events"], ["host", "list"]):
        refused = cloud.fails(*words)
        assert "No server is configured" in refused.err
        assert "make up" in refused.hint


def test_incomplete_connection_is_reported(cloud: Cloud) -> None:
    cloud.more["TERA_SERVER"] = "http://127.0.0.1:1"
    assert "`TERA_KEY` is not set" in cloud.fails("ps").err
    cloud.more["TERA_KEY"] = "nonsense"
    assert "cannot be reached" in cloud.fails("ps").err
    cloud.more["TERA_SERVER"] = "ftp://x"
    assert cloud.fails("ps").code == 2


def test_broken_connection_file_is_reported(cloud: Cloud) -> None:
    cloud.home.mkdir()
    (cloud.home / "connection.json").write_text("{")
    assert "Could not read" in cloud.fails("ps").err


def test_running_server_of_another_home_is_reported(cloud: Cloud) -> None:
    cloud.ok("up")
    there = cloud.more["TERA_LISTEN"]
    cloud.more["TERA_LISTEN"] = f"127.0.0.1:{free_port()}"
    refused = cloud.fails("up")
    assert there in refused.err
    assert cloud.more["TERA_LISTEN"] in refused.err
    assert "make down" in refused.hint
    cloud.ok("down")
    cloud.ok("up")  # the commands use it: it is the same installation
    assert cloud.ok("ps", "--json").json == []
    cloud.ok("purge", "--yes")
    assert not cloud.home.exists()


def test_reason_for_the_simulated_engine_is_shown_later_too(cloud: Cloud) -> None:
    cloud.ok("up")
    (engine,) = [each for each in json.loads(cloud.run("doctor", "--json").out) if each["check"] == "engine"]
    assert "requested by TERA_ENGINE" in engine["seen"]
    assert engine["verdict"] == "warning"
    assert "requested by TERA_ENGINE" in cloud.ok("up").err


def test_written_files_are_private(cloud: Cloud) -> None:
    cloud.ok("up")
    assert (cloud.home / "cloud").stat().st_mode & 0o077 == 0
    for name in (
        "connection.json",
        "cloud/settings.toml",
        "cloud/server.log",
        "cloud/operator.key",
        "cloud/cloud.db",
    ):
        assert (cloud.home / name).stat().st_mode & 0o077 == 0, name
