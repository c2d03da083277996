"""Decisions of `make up`: the engine, the settings, the address, and which process is ours."""

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.app.installation import background, connection, engine, removal
from teraflock.app.installation.connection import Connection
from teraflock.app.installation.engine import Engine
from teraflock.app.installation.places import Places
from teraflock.app.installation.up import server_url, settings_text
from teraflock.app.settings import Settings, load_settings
from teraflock.base.errors import BadInput

LXD = Engine(kind="lxd", description="", socket="/x/unix.socket")
WORDS = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)


@given(WORDS, WORDS)
def test_written_settings_are_read_back_unchanged(socket: str, database: str) -> None:
    given = {"TERA_DATABASE": database, "TERA_RATE_BURST": "7", "TERA_ENGINE": "simulated"}
    settings = Settings(database=database, rate_burst=7)
    text = settings_text(Engine(kind="lxd", description="", socket=socket), settings, given)
    assert tomllib.loads(text) == {
        "engine": "lxd",
        "lxd_socket": socket,
        "database": database,
        "rate_burst": 7,
    }


def test_the_server_accepts_the_written_settings(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.cloud.mkdir()
    places.settings.write_text(settings_text(LXD, Settings(listen="127.0.0.1:9000"), {"TERA_LISTEN": "x"}))
    settings = load_settings(places.server, {})
    assert (settings.engine, settings.lxd_socket, settings.listen) == (
        "lxd",
        "/x/unix.socket",
        "127.0.0.1:9000",
    )


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("127.0.0.1:8372", "http://127.0.0.1:8372"),
        ("0.0.0.0:80", "http://127.0.0.1:80"),
        ("[::1]:9", "http://[::1]:9"),
        ("[::]:9", "http://[::1]:9"),
    ],
)
def test_the_server_url_is_reachable(listen: str, url: str) -> None:
    assert server_url(Settings(listen=listen)) == url
    assert server_url(Settings(listen=listen, tls_cert="x")) == url.replace("http:", "https:")


def test_the_simulated_engine_can_be_requested(tmp_path: Path) -> None:
    assert engine.choose(Places(tmp_path), {"TERA_ENGINE": "simulated"}).kind == "simulated"


def test_without_root_the_engine_is_simulated_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    chosen = engine.choose(Places(tmp_path), {})
    assert (chosen.kind, chosen.description) == ("simulated", "not root")
    assert "as root" in chosen.repair


def test_without_an_engine_it_is_simulated_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("teraflock.app.installation.engine.daemon.find", lambda environment: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = engine.choose(Places(tmp_path), {})
    assert chosen.kind == "simulated"
    assert "installed" in chosen.description
    assert "engine-install" in chosen.repair


def test_a_kernel_without_bridge_filter_runs_no_real_guests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, answer in (("filters_bridges", False), ("raise_limits", ())):
        monkeypatch.setattr(f"teraflock.app.installation.engine.kernel.{name}", lambda answer=answer: answer)
    monkeypatch.setattr("teraflock.app.installation.engine._load_bridge_filter", lambda: None)
    found = engine.prepared(LXD, Places(tmp_path))
    assert found.kind == "simulated"
    assert "isolated" in found.description


SERVER = Connection(server="http://192.0.2.1:8372", key="kept")


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, SERVER),
        ({"TERA_KEY": "mine"}, Connection(server=SERVER.server, key="mine")),
        ({"TERA_SERVER": "http://192.0.2.1:8372/"}, SERVER),
        ({"TERA_SERVER": "http://x", "TERA_KEY": "mine"}, Connection(server="http://x", key="mine")),
    ],
)
def test_the_environment_takes_precedence_over_the_file(
    tmp_path: Path, environment: dict[str, str], found: Connection
) -> None:
    connection.write(tmp_path / "connection.json", SERVER)
    assert connection.find(tmp_path / "connection.json", environment) == found


@pytest.mark.parametrize("environment", [{"TERA_SERVER": "http://x"}, {"TERA_KEY": "mine"}])
def test_an_incomplete_connection_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    with pytest.raises(BadInput, match="is not set"):
        connection.find(tmp_path / "connection.json", environment)


def test_a_key_of_one_server_is_never_sent_to_another(tmp_path: Path) -> None:
    connection.write(tmp_path / "connection.json", SERVER)
    with pytest.raises(BadInput, match="`TERA_KEY` is not set"):
        connection.find(tmp_path / "connection.json", {"TERA_SERVER": "http://elsewhere"})


def test_a_secret_is_private_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "new" / "operator.key"
    connection.put_secret(path, b"secret\n")
    connection.put_secret(path, b"newer\n")
    assert path.read_bytes() == b"newer\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "content", ["", "x", "-1", "1", f"{os.getpid()}"], ids=["empty", "word", "negative", "first", "own"]
)
def test_a_pid_of_another_process_is_not_ours(tmp_path: Path, content: str) -> None:
    places = Places(tmp_path)
    places.cloud.mkdir()
    places.pid.write_text(content)
    assert background.running_pid(places) is None
    assert background.stop(places) is False
    assert not places.pid.exists()


def test_mounts_in_a_folder_are_found_innermost_first(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 0:5 / / rw - ext4 /dev/vda rw\n"
        "30 22 0:6 / /a/lxd/shmounts rw - tmpfs none rw\n"
        "31 30 0:7 / /a/lxd/shmounts/x\\040y rw - tmpfs none rw\n"
        "32 22 0:8 / /a/lxd2 rw - tmpfs none rw\n"
    )
    assert removal.mounts_below(Path("/a/lxd"), table) == [
        Path("/a/lxd/shmounts/x y"),
        Path("/a/lxd/shmounts"),
    ]
