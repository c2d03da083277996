"""Ignore files follow the rules of git: git itself is the oracle."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teraflock.cli.run.ignoring import ALWAYS
from teraflock.cli.run.workdir import walk

NAMES = ("a", "b.txt", "c.log", "data", "keep")
PATTERNS = ("a", "*.log", "data/", "/b.txt", "!keep", "data/*", "**/c.log", "data/**", "!b.txt", "[ab]*", "?",
            "a/b.txt",
            "# note", "", "data/keep/", r"\!a", "*.t?t", "[!a]", "**/data/**/keep", "b.txt ")  # fmt: skip


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=40)
@given(
    files=st.sets(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join), min_size=1, max_size=8
    ),
    top=st.lists(st.sampled_from(PATTERNS), max_size=4),
    inner=st.lists(st.sampled_from(PATTERNS), max_size=2),
)
def test_ignored_files_are_those_of_git(
    files: set[str], top: list[str], inner: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("ignored")
    for name in files:
        path = folder / name
        if not any(parent.is_file() for parent in path.parents) and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    (folder / ".gitignore").write_text("\n".join(top))
    if (folder / "data").is_dir():
        (folder / "data" / ".gitignore").write_text("\n".join(inner))
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    listed = subprocess.run(
        ["git", "-C", str(folder), "ls-files", "-o", "--exclude-standard", "-z"],
        check=True,
        capture_output=True,
    )
    expected = {name for name in listed.stdout.decode().split("\0") if name}
    assert {name for _, name in walk(folder)} == expected, (top, inner)
    shutil.rmtree(folder)


def test_folders_of_tools_are_never_uploaded(tmp_path: Path) -> None:
    for name in (*ALWAYS, "src"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("")
    assert [name for _, name in walk(tmp_path)] == ["src/file"]
