"""The error tree: everything that may go wrong and be told to a user.

    TeraflockError
    ├── BadInput            the user's words cannot be taken as they are           exit 2
    │   ├── UnknownName     a name nobody knows; the hint has the nearest ones     exit 2
    │   └── AmbiguousName   a name of several things; the hint lists their ids     exit 2
    ├── NotAuthenticated    nobody we know asks                                    exit 1
    ├── Forbidden           known, but may not                                     exit 1
    ├── NotFound            not there, or not the asker's: nobody is told which    exit 1
    ├── Conflict            the thing is there already, or busy with something     exit 1
    ├── TooMany             asked more often, or for more at once, than is allowed exit 1
    ├── Refused             understood, but not done: it would lose something      exit 1
    │   └── QuotaReached    a project or organisation has reached its quota        exit 1
    ├── BrokenSource        a file or download is not what it claims to be         exit 1
    ├── Unavailable         something needed is away or busy for now: try again    exit 1
    └── StorageFailed       the database cannot be read or written                 exit 1

An error has a stable `code`, a public sentence, a `hint` (what to do next) and a private `context` for
the log, which never reaches a response: it may hold what belongs to another tenant.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar


class TeraflockError(Exception):
    """Root of the tree. Raise a leaf, or a subclass of a leaf with a code of its own."""

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
    """An `UnknownName` whose hint has the names nearest to the one given."""
    near = nearest_names(name, known)
    hint = f"Did you mean {_listed(near)}?" if near else ""
    if see:
        hint = f"{hint} {see}".strip()
    return UnknownName(f"No {kind} is known by the name `{name}`", hint=hint)


def one_of(kind: str, word: str, words: Sequence[str]) -> None:
    """Refuse a word that is not among the few that are known."""
    if word not in words:
        there_are = f"There are {', '.join(f'`{each}`' for each in words)}"
        raise unknown_name(kind, word, words, see=there_are)


def not_found(kind: str, name: str, known: Iterable[str], *, see: str = "") -> NotFound:
    """A `NotFound` that suggests near names. Only for those who may know all the names in `known`."""
    return NotFound(f"There is no {kind} `{name[:80]}`", hint=f"{suggestion(name, known)} {see}".strip())


def suggestion(name: str, known: Iterable[str]) -> str:
    near = nearest_names(name, known)
    return f"Did you mean {_listed(near)}?" if near else ""


def ambiguous_name(kind: str, name: str, options: Iterable[str]) -> AmbiguousName:
    """`options` are the ids it could be, each with a word about it."""
    return AmbiguousName(
        f"Several {kind}s are called `{name[:80]}`", hint=f"Give an id instead: {', '.join(options)}"
    )


NEAREST_NAMES_MAX = 4  # more than a reader compares at a glance


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names most like `name`, best first."""
    import difflib  # only on the way to an error: it costs a cold start 10 ms

    by_folded: dict[str, str] = {}
    for each in known:
        by_folded.setdefault(each.casefold(), each)
    found = difflib.get_close_matches(name.casefold(), by_folded, n=NEAREST_NAMES_MAX, cutoff=0.5)
    inside = [folded for folded in by_folded if name and name.casefold() in folded and folded not in found]
    return [by_folded[folded] for folded in (found + sorted(inside, key=len))[:NEAREST_NAMES_MAX]]


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]
