"""SSH keys and host keys for the system's ssh: no prompt, no other trusted key, no change to the user's files."""

import stat
import subprocess
from pathlib import Path

import pytest
from tests.unit.cli.instance.answers import HOST_KEY, instance

from teraflock.base.errors import BadInput, Refused
from teraflock.cli.instance import ssh_files
from teraflock.cli.instance.ssh import reachable, remote_line, scp_path, split_path
from teraflock.wire.instance import SshAnswer

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKeyOfTheUser ada"


def test_the_users_ssh_key_is_preferred(tmp_path: Path) -> None:
    folder = tmp_path / "user" / ".ssh"
    folder.mkdir(parents=True)
    for name in ("id_rsa", "id_ed25519"):
        (folder / name).write_text("private")
        (folder / f"{name}.pub").write_text(f"{KEY} {name}\n")
    assert ssh_files.public_keys((), tmp_path / "home", tmp_path / "user") == (f"{KEY} id_ed25519",)
    assert not (tmp_path / "home").exists()


def test_key_is_generated_if_the_private_half_is_missing(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519.pub").write_text(KEY)
    made = ssh_files.public_keys((), tmp_path / "home", tmp_path)
    assert made[0].endswith(" teraflock")
    assert made == ssh_files.public_keys((), tmp_path / "home", tmp_path)
    private = tmp_path / "home" / "ssh" / "id_ed25519"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert ssh_files.identities(tmp_path / "home", tmp_path) == [private]


def test_incomplete_key_is_generated_again(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "ssh"
    folder.mkdir(parents=True)
    (folder / "id_ed25519").write_text("")
    assert ssh_files.public_keys((), tmp_path / "home", tmp_path)[0].startswith("ssh-ed25519 ")


def test_keys_are_given_as_files_or_text(tmp_path: Path) -> None:
    file = tmp_path / "k.pub"
    file.write_text(f"{KEY}\n")
    assert ssh_files.public_keys((str(file), KEY), tmp_path, tmp_path) == (KEY, KEY)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", "is a private key"),
        ("hello", "is not a public SSH key"),
        ("ssh-ed25519", "is not a public SSH key"),
        (f"{KEY}\n{KEY}", "is not a public SSH key"),
        (f"ssh-rsa {'A' * 20000}", "is not a public SSH key"),
        ("", "is not a public SSH key"),
    ],
)
def test_only_public_keys_are_accepted(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "k").write_text(content)
    with pytest.raises(BadInput, match=sentence):
        ssh_files.read_public_key(str(tmp_path / "k"))


def test_missing_key_file_is_an_error() -> None:
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        ssh_files.read_public_key("/nowhere/k.pub")


@pytest.mark.parametrize("folder", ["plain", "with blank", 'per%cent "quoted'])
def test_ssh_understands_the_options(tmp_path: Path, folder: str) -> None:
    """Uses `ssh -G`, which prints the options it understood and does not connect."""
    home = tmp_path / folder.replace('"', "")
    trusted = ssh_files.trust(home, "ins_1", HOST_KEY)
    assert trusted.read_text() == f"ins_1 {HOST_KEY}\n"
    key = home / "ssh" / "id_ed25519"
    words = [
        "ssh",
        "-F",
        "none",
        "-G",
        *ssh_files.options("ins_1", trusted, [key]),
        "-p",
        "20001",
        "--",
        "192.0.2.7",
    ]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    understood = dict(line.partition(" ")[::2] for line in told.splitlines())
    assert understood["stricthostkeychecking"] == "true"
    assert understood["hostkeyalias"] == "ins_1"
    assert understood["passwordauthentication"] == "no"
    assert understood["port"] == "20001"
    assert understood["globalknownhostsfile"] == "/dev/null"
    assert understood["userknownhostsfile"].strip('"').replace("%%", "%") == str(trusted)


def test_host_key_of_a_deleted_instance_is_removed(tmp_path: Path) -> None:
    trusted = ssh_files.trust(tmp_path, "ins_1", HOST_KEY)
    ssh_files.forget(tmp_path, "ins_1")
    ssh_files.forget(tmp_path, "ins_1")
    assert not trusted.exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), []),
        (("ls | wc -l",), ["ls | wc -l"]),
        (("echo", "a b", "$HOME", ";"), ["echo 'a b' '$HOME' ';'"]),
    ],
)
def test_several_words_are_quoted_and_one_text_is_not(words: tuple[str, ...], line: list[str]) -> None:
    assert remote_line(words) == line


@pytest.mark.parametrize(
    ("path", "split", "scp"),
    [
        ("web:/x", ("web", "/x"), "root@192.0.2.7:/x"),
        ("web:", ("web", ""), "root@192.0.2.7:"),
        ("./a:b", ("", "./a:b"), "./a:b"),
        ("-oProxyCommand=x", ("", "-oProxyCommand=x"), "./-oProxyCommand=x"),
        ("/etc/a:b", ("", "/etc/a:b"), "/etc/a:b"),
        ("plain", ("", "plain"), "./plain"),
    ],
)
def test_local_and_remote_paths(path: str, split: tuple[str, str], scp: str) -> None:
    assert split_path(path) == split
    assert scp_path(path, SshAnswer(host="192.0.2.7", port=1, user="root", host_key="")) == scp


def test_an_ipv6_host_is_bracketed() -> None:
    assert (
        scp_path("web:x", SshAnswer(host="2001:db8::7", port=1, user="root", host_key=""))
        == "root@[2001:db8::7]:x"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"simulated": True}, "SIMULATED, so you cannot log in"),
        ({"state": "stopped"}, "is stopped"),
        ({"ssh": None}, "you cannot log in now"),
        ({"ssh": SshAnswer(host="h", port=1, user="root", host_key="")}, "you cannot log in now"),
    ],
)
def test_login_needs_a_running_instance_with_a_host_key(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        reachable(instance(**changes))


def test_login_to_an_away_instance_is_tried(capsys: pytest.CaptureFixture[str]) -> None:
    """The server cannot reach the host, but the guest may still answer."""
    away = instance(state="away")
    assert reachable(away) == away.ssh
    assert "Trying to log in anyway" in capsys.readouterr().err
