"""`tera ssh` and `tera cp` run the system's ssh and scp with all options they need."""

from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest
from tests.unit.cli.instance.answers import HOST_KEY, INSTANCE

from teraflock.cli import main
from teraflock.wire.instance import InstanceAnswer


class Server:
    """A client of a server that has one instance."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def instances(self) -> Self:
        return self

    def get(self, ref: str) -> InstanceAnswer:
        assert ref == "web"
        return INSTANCE


class Became(Exception):
    """Raised instead of replacing this process."""


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[str]]:
    """The command that would replace this process."""
    monkeypatch.setenv("TERA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("teraflock.cli.instance.ssh.connected", lambda project: Server())

    def become(program: str, words: list[str]) -> None:
        raise Became(words)

    monkeypatch.setattr("os.execvp", become)

    def run(*words: str) -> list[str]:
        with pytest.raises(Became) as ending:
            main.tera.main(list(words), standalone_mode=False)
        became: list[str] = ending.value.args[0]
        return became

    return run


def test_ssh_gets_address_host_key_and_ssh_key(became: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("private")
    words = became("ssh", "web", "-L", "8888:localhost:8888", "--", "nvidia-smi", "-L")
    assert words[0] == "ssh"
    assert words[-5:] == ["-l", "root", "--", "192.0.2.7", "nvidia-smi -L"]
    assert words[words.index("-p") :][:2] == ["-p", "20001"]
    assert words[words.index("-L") :][:2] == ["-L", "8888:localhost:8888"]
    assert "StrictHostKeyChecking=yes" in words
    assert f"{tmp_path}/.ssh/id_rsa" in words
    trusted = tmp_path / "home" / "ssh" / "known_hosts" / INSTANCE.id
    assert trusted.read_text() == f"{INSTANCE.id} {HOST_KEY}\n"


def test_login_without_a_command(became: Callable[..., list[str]]) -> None:
    assert became("ssh", "web")[-2:] == ["--", "192.0.2.7"]


def test_given_identity_is_the_only_one_tried(became: Callable[..., list[str]], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("private")
    words = became("ssh", "web", "-i", str(key))
    assert [words[i + 1] for i, word in enumerate(words) if word == "-i"] == [str(key)]


def test_scp_gets_source_and_target(became: Callable[..., list[str]]) -> None:
    words = became("cp", "-r", "data", "web:/srv/data")
    assert words[0] == "scp"
    assert words[-3:] == ["--", "./data", "root@192.0.2.7:/srv/data"]
    assert "-r" in words
    assert words[words.index("-P") :][:2] == ["-P", "20001"]


def test_user_words_are_never_ssh_options(became: Callable[..., list[str]]) -> None:
    words = became("ssh", "web", "--", "-oProxyCommand=touch /tmp/x", "b")
    assert words.index("--") < words.index("192.0.2.7") < len(words) - 1
    assert words[-1] == "'-oProxyCommand=touch /tmp/x' b"
