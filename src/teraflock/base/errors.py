"""The error tree: every failure that a user can see.

    TeraflockError
    ├── BadInput            the input is invalid                                   exit 2
    │   ├── UnknownName     no such name; the hint suggests similar names          exit 2
    │   └── AmbiguousName   several things have this name; the hint lists the ids  exit 2
    ├── NotAuthenticated    no valid API key                                       exit 1
    ├── Forbidden           a valid API key without the permission                 exit 1
    ├── NotFound            does not exist, or belongs to another tenant           exit 1
    ├── Conflict            already exists, or is busy                             exit 1
    ├── TooMany             too many requests, or too much in one request          exit 1
    ├── Refused             valid, but refused because it would lose something     exit 1
    │   └── QuotaReached    a project or organisation has reached its quota        exit 1
    ├── BrokenSource        a file or download is damaged or has the wrong format  exit 1
    ├── Unavailable         a dependency is unavailable or busy; try again         exit 1
    └── StorageFailed       the database cannot be read or written                 exit 1

An error has a stable `code`, a public sentence, a `hint` (what to do next) and a private `context`. The context
goes to the log and never into a response, because it may contain data of another tenant.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar


class TeraflockError(Exception):
    """Root of the tree. Raise a leaf, or a subclass of a leaf with its own code."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, sentence: str, *, hint: str = "", context: Mapping[str, object] | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.context: Mapping[str, object] = dict(context or {})


class BadInput(TeraflockError):
    code = "bad_input"
    exit_code = 2


class UnknownName(BadInput):
    code = "unknown_name"


class AmbiguousName(BadInput):
    code = "ambiguous_name"


class NotAuthenticated(TeraflockError):
    code = "not_authenticated"


class Forbidden(TeraflockError):
    code = "forbidden"


class NotFound(TeraflockError):
    code = "not_found"


class Conflict(TeraflockError):
    code = "conflict"


class TooMany(TeraflockError):
    code = "too_many"


class Refused(TeraflockError):
    code = "refused"


class QuotaReached(Refused):
    code = "quota_reached"


class BrokenSource(TeraflockError):
    code = "broken_source"


class Unavailable(TeraflockError):
    code = "unavailable"


class StorageFailed(TeraflockError):
    code = "storage_failed"


def unknown_name(kind: str, name: str, known: Iterable[str], *, see: str = "") -> UnknownName:
    """Build an `UnknownName` whose hint suggests the most similar known names."""
    near = nearest_names(name, known)
    hint = f"Did you mean {_listed(near)}?" if near else ""
    if see:
        hint = f"{hint} {see}".strip()
    return UnknownName(f"Unknown {kind} `{name}`", hint=hint)


def not_found(kind: str, name: str, known: Iterable[str], *, see: str = "") -> NotFound:
    """Build a `NotFound` that suggests similar names. Use it only where the caller may see all names in `known`."""
    return NotFound(f"There is no {kind} `{name[:80]}`", hint=f"{suggestion(name, known)} {see}".strip())


def suggestion(name: str, known: Iterable[str]) -> str:
    near = nearest_names(name, known)
    return f"Did you mean {_listed(near)}?" if near else ""


def ambiguous_name(kind: str, name: str, options: Iterable[str]) -> AmbiguousName:
    """`options` are the possible ids, each with a short description."""
    return AmbiguousName(
        f"Several {kind}s are called `{name[:80]}`", hint=f"Give an id instead: {', '.join(options)}"
    )


NEAREST_NAMES_MAX = 4  # more would be hard to compare at a glance


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names most similar to `name`, best first."""
    import difflib  # imported only for errors: it adds 10 ms to the start of `tera`

    by_folded: dict[str, str] = {}
    for each in known:
        by_folded.setdefault(each.casefold(), each)
    found = difflib.get_close_matches(name.casefold(), by_folded, n=NEAREST_NAMES_MAX, cutoff=0.5)
    inside = [folded for folded in by_folded if name and name.casefold() in folded and folded not in found]
    return [by_folded[folded] for folded in (found + sorted(inside, key=len))[:NEAREST_NAMES_MAX]]


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]
