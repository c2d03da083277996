"""Which files of a folder belong to a run: all but those that `.gitignore` and `.teraignore` exclude. Pure.

The rules are those of git: a later pattern wins, `!` includes again, a pattern with a slash is anchored at its file's
folder, a trailing slash matches folders only, and `**` matches any folders.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

IGNORE_FILES: Final = (".gitignore", ".teraignore")
ALWAYS: Final = frozenset({".git", "__pycache__", ".venv", "node_modules", ".mypy_cache", ".pytest_cache"})

Pattern = tuple[str, bool, bool, "re.Pattern[str]"]
"""The folder of the ignore file, whether it includes again, whether it matches folders only, and the expression."""


def patterns_of(text: str, folder: str) -> list[Pattern]:
    """Read an ignore file. `folder` is its folder, relative to the top; empty at the top."""
    return [each for line in text.splitlines() if (each := _pattern(line, folder)) is not None]


def is_ignored(path: str, is_folder: bool, patterns: Iterable[Pattern]) -> bool:
    """Whether a path, relative to the top, is excluded. Its parents are not: they were checked before."""
    ignored = path.rpartition("/")[2] in ALWAYS
    for folder, includes, folders_only, expression in patterns:
        below = _below(path, folder)
        if below is not None and (is_folder or not folders_only) and expression.fullmatch(below):
            ignored = not includes
    return ignored


def _below(path: str, folder: str) -> str | None:
    if not folder:
        return path
    return path[len(folder) + 1 :] if path.startswith(f"{folder}/") else None


def _pattern(line: str, folder: str) -> Pattern | None:
    line = re.sub(r"(?<!\\)\s+$", "", line)
    if not line or line.startswith("#"):
        return None
    includes = line.startswith("!")
    line = line[1:] if includes else line
    folders_only = line.endswith("/")
    line = line.rstrip("/")
    if not line:
        return None
    anchored = "/" in line
    body = _expression(line.lstrip("/"))
    return folder, includes, folders_only, re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL)


@lru_cache(maxsize=1024)
def _expression(glob: str) -> str:
    parts = glob.split("/")
    found: list[str] = []
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            found.append(".*" if last else "(?:.*/)?")
        else:
            found.append(_part(part) + ("" if last else "/"))
    return "".join(found)


def _part(glob: str) -> str:
    """One path component as a regular expression."""
    found, at = "", 0
    while at < len(glob):
        character = glob[at]
        at += 1
        if character == "*":
            found += "[^/]*"
        elif character == "?":
            found += "[^/]"
        elif character == "\\" and at < len(glob):
            found += re.escape(glob[at])
            at += 1
        elif character == "[" and (end := _class_end(glob, at)) > 0:
            found += _class(glob[at:end])
            at = end + 1
        else:
            found += re.escape(character)
    return found


def _class_end(glob: str, at: int) -> int:
    start = at + 1 if glob[at : at + 1] in ("!", "^") else at
    return glob.find("]", start + 1)


def _class(inside: str) -> str:
    negated = inside[:1] in ("!", "^")
    inside = inside[1:] if negated else inside
    body = inside.replace("\\", "\\\\").replace("]", "\\]").replace("[", "\\[")
    return f"(?!/)[{'^' if negated else ''}{body}]"


def sorted_names(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: name.encode("utf-8", "surrogateescape"))
