"""`tera jupyter` prints an address that works, and tunnels to nothing but the Jupyter of the named machine."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.unit.cli.instance.answers import INSTANCE
from tests.unit.cli.instance.test_ssh import Became, Server

from teraflock.base.errors import TeraflockError
from teraflock.cli import main
from teraflock.cli.instance.jupyter import free_port
from teraflock.wire.instance import InstanceAnswer, JupyterAnswer

URL = "http://127.0.0.1:8888/lab?token=f00d"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[str]]:
    """The ssh command that `tera jupyter` becomes; empty: it ended."""
    monkeypatch.setenv("TERA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    server = Server()
    monkeypatch.setattr("teraflock.cli.instance.jupyter.connected", lambda project: server)

    def become(program: str, words: list[str]) -> None:
        raise Became(words)

    monkeypatch.setattr("os.execvp", become)

    def run(instance: InstanceAnswer, *words: str) -> list[str]:
        monkeypatch.setattr(server, "get", lambda ref: instance, raising=False)
        try:
            main.tera.main(["jupyter", "web", *words], standalone_mode=False)
        except Became as ending:
            return list(ending.args[0])
        return []

    return run


def lab(**changes: object) -> InstanceAnswer:
    facts = {"access": "jupyter", "jupyter": JupyterAnswer(url=URL, through_ssh=True), **changes}
    return replace(INSTANCE, **facts)


def test_a_rented_machine_is_reached_through_ssh_with_its_own_host_key(
    opened: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port(None)
    words = opened(lab(), "--port", str(port))
    assert words[words.index("-L") + 1] == f"127.0.0.1:{port}:127.0.0.1:8888"
    assert {"StrictHostKeyChecking=yes", "ExitOnForwardFailure=yes", "-N"} <= set(words)
    assert words[-2:] == ["--", "192.0.2.7"], "no command runs there"
    assert capsys.readouterr().out == f"http://127.0.0.1:{port}/lab?token=f00d\n"


def test_on_an_own_host_the_address_is_enough(
    opened: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://192.0.2.7:20002/lab?token=f00d"
    assert opened(lab(jupyter=JupyterAnswer(url=url))) == []
    assert capsys.readouterr().out == f"{url}\n"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"access": "ssh", "jupyter": None}, "has no Jupyter"),
        ({"state": "starting"}, "is starting"),
        ({"jupyter": None}, "may not use"),
    ],
)
def test_what_cannot_work_is_refused_before_a_connection(
    opened: Callable[..., list[str]], changes: dict[str, object], words: str
) -> None:
    with pytest.raises(TeraflockError, match=words):
        opened(lab(**changes))


def test_a_port_in_use_is_named_or_another_one_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(TeraflockError, match="in use"):
            free_port(taken.getsockname()[1])
    assert free_port(None) > 0
