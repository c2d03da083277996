"""The words of `tera run`: wrong input is reported before any request."""

import contextlib
import io
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from teraflock.base.errors import TeraflockError
from teraflock.cli.run.command import command
from teraflock.cli.run.file import NAMES
from teraflock.cli.run.measured import script_digest
from teraflock.cli.run.plan import RunPlan, lines
from teraflock.cli.run.request import forgotten_file, given_words, request_from
from teraflock.cli.run.script import Script
from teraflock.cli.run.workdir import pack

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project" / "train.py").write_text("print(1)\n")
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("train.py", "--lr", "0.1"), "Unknown option `--lr`"),
        (("train.py", "extra"), "Unexpected argument `extra`"),
        (("absent.py",), "File not found: `absent.py`"),
        ((), "Nothing to run"),
        (("--workdir", "absent", "--", "true"), "`absent` is not a folder"),
        (("--workdir", "/", "--", "true"), "root of the disk"),
        (("--workdir", "..", "--", "true"), "home folder"),
        (("/etc/hostname",), "is not inside the folder"),
        (("--env", "A", "--", "true"), "is not a pair"),
        (("--cpu-only", "--gpu", "V100", "--", "true"), "contradict each other"),
        (("--requirements", "absent.txt", "--", "true"), "`absent.txt` cannot be read"),
        (("--secret", "A=b", "--", "true"), "takes a name, not a value"),
        (("--requirements", "train.py.toml", "--", "true"), "`train.py.toml` cannot be read"),
        (("--requirements", "/dev/zero", "--", "true"), "`/dev/zero` has more than 64 KB"),
        (("--sweep", "lr=", "--", "true"), "`lr` cannot be swept"),
        (("--sweep", "l;r=1", "--", "true"), "`l;r` cannot be swept"),
        (("--sweep", f"lr={','.join(map(str, range(10_000)))}", "--", "true"), "1 to 100 runs, not 10000"),
        (("--sweep", "lr=1,1", "--", "true"), "one or more different values"),
        (("--offer", "x", "--", "true"), "is not the id of an offer"),
        (
            ("--offer", "0123456789abcdef", "--gpu", "V100", "--", "true"),
            "The offer already names the machine",
        ),
    ],
)
def test_wrong_words_get_one_sentence(folder: Path, words: tuple[str, ...], sentence: str) -> None:
    done = CliRunner().invoke(command, list(words))
    assert isinstance(done.exception, TeraflockError), done.output
    assert sentence in done.exception.sentence
    assert done.exception.hint


@pytest.mark.parametrize(
    ("script", "after", "expected"),
    [
        ("train.py", ("--lr", "1"), ("python3", "train.py", "--lr", "1")),
        ("./train.py", (), ("python3", "train.py")),
        ("./-x.py", (), ("python3", "./-x.py")),
        ("./-c.sh", ("x",), ("bash", "./-c.sh", "x")),
        ("a b\n$(id).py", (), ("python3", "a b\n$(id).py")),
        ("go.sh", ("x",), ("bash", "go.sh", "x")),
        ("tool", (), ("./tool",)),
        (None, ("make", "test"), ("make", "test")),
    ],
)
def test_script_becomes_a_command(
    folder: Path, script: str | None, after: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    for name in ("go.sh", "tool", "-x.py", "-c.sh", "a b\n$(id).py"):
        (folder / name).write_text("")
    words = given_words(script, after, {})
    assert words.command == expected
    assert words.workdir == ("." if script else "")


@pytest.mark.parametrize(
    ("after", "workdir", "named"),
    [
        (("python3", "train.py"), "", "train.py"),
        (("python3", "train.py"), ".", ""),
        (("python3", "/etc/hostname"), "", ""),
        (("echo", "absent.py", "x" * 5_000), "", ""),
    ],
)
def test_file_that_a_command_needs_and_nobody_uploads_is_named(
    folder: Path, after: tuple[str, ...], workdir: str, named: str
) -> None:
    assert forgotten_file(given_words(None, after, {"workdir": workdir})) == named


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("python3 train.py --lr 1", "train.py --lr 1"),
        ("/usr/bin/python3.11 -u -X dev -Wignore train.py", "train.py"),
        ("python ./train.py -m x", "./train.py -m x"),
        ("torchrun --standalone --nproc-per-node 8 --nnodes=1 train.py a.py", "train.py a.py"),
        ("python3 -u -m torch.distributed.run --nproc_per_node 2 --run_path train.py", "train.py"),
        ("torchrun -m train.py", ""),
        ("torchrun --no_python ./train.py", ""),
        ("python3 -c 1 train.py", ""),
        ("python3 -um json.tool train.py", ""),
        ("python3", ""),
        ("python3 absent.py", ""),
        ("python3 ../outside.py", ""),
        ("python3 linked.py", ""),
        ("pythonista train.py", ""),
        ("bash -c train.py", ""),
    ],
)
def test_python_script_of_a_command_is_found(folder: Path, command: str, found: str) -> None:
    (folder / "../outside.py").write_text("")
    (folder / "linked.py").symlink_to("../outside.py")
    words = given_words(None, tuple(command.split()), {"workdir": "."})
    path, *arguments = found.split() or [""]
    assert words.python == (Script(path, tuple(arguments)) if found else None)
    assert bool(script_digest(words)) == bool(found)
    assert given_words(None, tuple(command.split()), {}).python is None, "nothing is uploaded"


def test_upload_depends_on_the_content_only(folder: Path) -> None:
    first = pack(folder)
    (folder / "train.py").touch()
    (folder / "link").symlink_to("train.py")
    again = pack(folder)
    assert (again.digest, again.files, again.skipped) == (first.digest, 1, 1)
    (folder / "train.py").write_text("print(2)\n")
    assert pack(folder).digest != first.digest


def test_a_file_larger_than_the_limit_is_not_read(folder: Path) -> None:
    with (folder / "weights.pt").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TeraflockError, match="has more than 256 MB or 20,000 files"):
        pack(folder)


def test_what_cannot_be_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "secret.key").write_text("")

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        with pytest.raises(TeraflockError, match=r"`.*secret.key` cannot be read: Permission denied"):
            pack(folder)


def test_links_that_lead_in_a_circle_are_skipped(folder: Path) -> None:
    (folder / "here").symlink_to(".")
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    assert pack(folder).skipped == 3


VALUES = (
    "5", "-1", "0", ".inf", ".nan", "1e999", "x", "''", "[]", "[1]", "[[1]]", "{a: 1}", "{1: [2]}", "true",
    "2026-11-20", "'a=b'", "'/'", "'..'", "'\\0'", '"\\0"', "'$(id)'", "9" * 400,
    "a" * 3000, "9" * 5000, "2026-13-45", "[" * 3000, "/dev/zero", "&a {A: *a}", "{A: [[1]]}",
)  # fmt: skip


@pytest.mark.parametrize("word", sorted(NAMES))
def test_every_value_of_every_word_of_the_file_is_taken_or_refused(
    folder: Path, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never anything but one of our errors."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for value in VALUES:
        text = (
            f"{word}: {value}\n" if word in ("script", "command") else f"script: train.py\n{word}: {value}\n"
        )
        (folder / "tera.yaml").write_text(text)
        with contextlib.suppress(TeraflockError, click.ClickException):
            request_from(given_words(None, (), {}), None, NOW)


def test_values_that_are_far_larger_as_text_are_refused(folder: Path) -> None:
    """Each line doubles it."""
    doubled = "".join(f"  - &l{at} [*l{at - 1}, *l{at - 1}]\n" for at in range(1, 60))
    for word in ("env", "sweep"):
        (folder / "tera.yaml").write_text(f"script: train.py\n{word}:\n  lr:\n  - &l0 [x]\n{doubled}")
        with pytest.raises(TeraflockError, match=f"A value in `{word}`"):
            given_words(None, (), {})


def test_plan_shows_what_a_file_from_elsewhere_would_send(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "train.py").write_text("")
    (folder / "secret").write_text("root:hash\n")
    (folder / "tera.yaml").write_text("script: train.py\nworkdir: sub\nrequirements: secret\nsetup: id\n")
    words = given_words(None, (), {})
    plan = RunPlan(request=request_from(words, None, NOW))
    shown = dict(lines(plan, pack(Path(words.workdir))))
    assert "of `sub`" in shown["files"]
    assert shown["setup"] == "root:hash; id (cached after the first run)"


def test_dependencies_of_a_project_are_its_requirements(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project]\ndependencies = ["numpy>=2", "einops"]\n')
    words = given_words("train.py", (), {"requirements": "pyproject.toml"})
    assert words.requirements == "numpy>=2\neinops\n"
    (folder / "pyproject.toml").write_text("[project]\n")
    with pytest.raises(TeraflockError, match="no list `dependencies`"):
        given_words("train.py", (), {"requirements": "pyproject.toml"})
