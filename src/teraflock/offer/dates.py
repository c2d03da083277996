"""The date of each file of a catalog: given by the user, or that of its last commit.

The modification time of a file is never used: after `git clone` or a copy it is not the date of the prices.
A file that is not committed, or that was changed since, has no date. Nor has a file whose last change is missing from a
shallow clone.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.offer.words import parse_day

DayOf = Callable[[Path], str]
"""Returns the date of a file as text, or an empty text if it is unknown."""

GIT_SECONDS_MAX: Final = 60  # for one file; the longest history of a public catalog takes one second
GIT: Final = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks")
"""Runs no program that the configuration of a downloaded repository names."""


class GivenDates(msgspec.Struct, frozen=True):
    """Dates that the user gave: one for all files, and others for files or folders by name."""

    everywhere: str = ""
    by_name: Mapping[str, str] = {}

    def day_of(self, file: Path) -> str:
        names = (file.name, file.stem, file.parent.name)
        return next((self.by_name[name] for name in names if name in self.by_name), self.everywhere)


def given_dates(texts: Sequence[str], latest: date) -> GivenDates:
    """Parse `2026-08-22` for all files, or `azure=2025-09-10` for a file or folder."""
    everywhere, by_name = "", dict[str, str]()
    for text in texts:
        name, equals, day = text.rpartition("=")
        if not equals and everywhere:
            raise BadInput(
                "`--as-of` has two dates for all files",
                hint="Write `--as-of NAME=DATE` for one file or folder",
            )
        parsed = day_of_prices(day, latest).isoformat()
        if equals:
            by_name[name.strip()] = parsed
        else:
            everywhere = parsed
    return GivenDates(everywhere, by_name)


def day_of_prices(text: str, latest: date) -> date:
    """Parse the date of prices. The current month or year means today. A future date would block later imports."""
    day = parse_day(text)
    if day > latest and not latest.isoformat().startswith(text.strip()):
        raise BadInput(f"`{text}` is in the future", hint="Give today or an earlier date")
    return min(day, latest)


def file_dates(given: GivenDates, latest: date) -> DayOf:
    """Return the given date of a file, otherwise that of its last commit."""

    def day_of(file: Path) -> str:
        day = given.day_of(file) or commit_day(file)
        return min(day, latest.isoformat()) if day else ""  # the clock of a committer may be ahead

    return day_of


def commit_day(file: Path) -> str:
    """Return the day of the last commit of a file. Empty if it is not committed as it is, or there is no git."""
    folder, name = file.parent, file.name
    if _git(folder, "status", "--porcelain", "--ignored", "--", name) != "":
        return ""
    day, _, commit = (_git(folder, "log", "-1", "--format=%cs %H", "--", name) or "").partition(" ")
    return day if _is_day(day) and commit not in _cut_off(folder) else ""


def _cut_off(folder: Path) -> list[str]:
    """Return the oldest commits of a shallow clone. They seem to add every file, whenever it was really changed."""
    path = _git(folder, "rev-parse", "--git-path", "shallow")
    try:
        return (folder / path).read_text("ascii").split() if path else []
    except (OSError, UnicodeDecodeError):
        return []


def _git(folder: Path, *arguments: str) -> str | None:
    """Run git and return its output. None if it fails."""
    import subprocess  # imported here because most commands read no catalog

    quiet = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [*GIT, "-C", str(folder), *arguments],
            capture_output=True, text=True, errors="replace", timeout=GIT_SECONDS_MAX, env=quiet, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
