"""The date of a file is given or that of its last commit, never its modification time."""

import os
import subprocess
from datetime import date
from pathlib import Path

import pytest

from teraflock.base.errors import BadInput
from teraflock.offer.dates import commit_day, file_dates, given_dates

TODAY = date(2026, 11, 15)


def git(folder: Path, *words: str, day: str = "2026-08-22") -> None:
    when = f"{day}T12:00:00+00:00"
    env = {
        **os.environ, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }  # fmt: skip
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *names, *words], cwd=folder, env=env, check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository in which one file is a year older than the other. Both have the same modification time."""
    folder = tmp_path / "catalog"
    for cloud, day in (("azure", "2025-09-10"), ("aws", "2026-08-22")):
        (folder / cloud).mkdir(parents=True)
        (folder / cloud / "vms.csv").write_text("prices\n")
        if cloud == "azure":
            git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", cloud, day=day)
    return folder


def test_each_file_has_the_date_of_its_last_commit(clone: Path) -> None:
    day_of = file_dates(given_dates((), TODAY), TODAY)
    assert day_of(clone / "azure" / "vms.csv") == "2025-09-10"
    assert day_of(clone / "aws" / "vms.csv") == "2026-08-22"


def test_a_changed_or_new_file_has_no_date(clone: Path) -> None:
    (clone / "aws" / "vms.csv").write_text("other prices\n")
    (clone / "aws" / "new.csv").write_text("prices\n")
    (clone / ".gitignore").write_text("ignored.csv\n")
    (clone / "aws" / "ignored.csv").write_text("prices\n")
    for name in ("vms.csv", "new.csv", "ignored.csv"):
        assert commit_day(clone / "aws" / name) == ""
    assert commit_day(clone / "azure" / "vms.csv") == "2025-09-10"


def test_a_file_outside_of_a_repository_has_no_date(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("prices\n")
    assert commit_day(tmp_path / "prices.csv") == ""
    assert commit_day(tmp_path / "missing" / "prices.csv") == ""


def test_a_repository_cannot_run_programs(clone: Path, tmp_path: Path) -> None:
    """A downloaded repository may name programs in its configuration."""
    mark = tmp_path / "ran"
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    git(clone, "config", "core.fsmonitor", str(script))
    assert commit_day(clone / "aws" / "vms.csv") == "2026-08-22"
    assert not mark.exists()


def test_a_shallow_clone_does_not_know_when_old_files_changed(clone: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{clone}", "shallow")
    assert commit_day(tmp_path / "shallow" / "azure" / "vms.csv") == ""
    git(tmp_path, "clone", "-q", f"file://{clone}", "whole")
    assert commit_day(tmp_path / "whole" / "azure" / "vms.csv") == "2025-09-10"


def test_a_commit_in_the_future_counts_as_today(clone: Path) -> None:
    (clone / "aws" / "vms.csv").write_text("new prices\n")
    git(clone, "commit", "-q", "-a", "-m", "ahead", day="2027-01-01")
    assert file_dates(given_dates((), TODAY), TODAY)(clone / "aws" / "vms.csv") == "2026-11-15"


def test_given_dates_come_first(clone: Path) -> None:
    day_of = file_dates(given_dates(("2026-01-01", "azure=2024-05-06"), TODAY), TODAY)
    assert day_of(clone / "azure" / "vms.csv") == "2024-05-06"
    assert day_of(clone / "aws" / "vms.csv") == "2026-01-01"
    by_name = given_dates(("aws=2026-02-03", "b.csv=2026-03-04"), TODAY)
    assert by_name.day_of(Path("x/aws.csv")) == "2026-02-03"
    assert by_name.day_of(Path("x/b.csv")) == "2026-03-04"
    assert by_name.day_of(Path("x/c.csv")) == ""


@pytest.mark.parametrize("texts", [("soon",), ("2027-01-01",), ("aws=",), ("2026-01-01", "2026-02-01")])
def test_wrong_dates_get_one_sentence(texts: tuple[str, ...]) -> None:
    with pytest.raises(BadInput):
        given_dates(texts, TODAY)
