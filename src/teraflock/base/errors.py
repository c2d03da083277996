"""The error tree: everything that can go wrong and that a user may read.

    TeraflockError
    ├── BadInput            the request cannot be accepted as it is                  exit 2
    │   ├── UnknownName     a name that does not exist; the hint has the nearest     exit 2
    │   └── AmbiguousName   a name of several things; the hint lists their ids       exit 2
    ├── NotAuthenticated    no valid API key                                         exit 1
    ├── Forbidden           a valid key without the permission                       exit 1
    ├── NotFound            does not exist, or belongs to someone else               exit 1
    ├── Conflict            already exists, or is busy                               exit 1
    ├── TooMany             over a limit on requests                                 exit 1
    ├── Refused             understood, but not done: something would be lost        exit 1
    │   └── QuotaReached    a project or organisation has reached its quota          exit 1
    ├── BrokenSource        a file or download is not what it claims to be           exit 1
    ├── Unavailable         something needed does not answer now: try again          exit 1
    └── StorageFailed       the database cannot be read or written                   exit 1

An error has a stable `code`, a public sentence, a `hint` (what to do next) and a private `context` for the log. The
context never reaches a response: it may hold what belongs to another tenant.

docs/errors.md is generated from these classes and their subclasses: the docstring of a class is the meaning of its
code, and `remedy` is what the reader can do. api/errors.py has the HTTP statuses.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

KNOWN_NAMES_MAX = 30


class TeraflockError(Exception):
    """An error without a more specific code."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    remedy: ClassVar[str] = "Report it to the operator with the `request_id`."
    """What the reader of any error with this code can do. The `hint` of one error is more specific."""

    def __init__(self, sentence: str, *, hint: str = "", context: Mapping[str, object] | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.context: Mapping[str, object] = dict(context or {})


def error_classes(root: type[TeraflockError] = TeraflockError) -> Iterator[type[TeraflockError]]:
    """All imported error classes, parents first."""
    yield root
    for child in root.__subclasses__():
        yield from error_classes(child)


class BadInput(TeraflockError):
    """The request is well formed, but a value in it cannot be accepted."""

    code = "bad_input"
    exit_code = 2
    remedy = "Correct the value that the sentence names. The hint says which values are accepted."


class UnknownName(BadInput):
    """A name in the request does not exist."""

    code = "unknown_name"
    remedy = "Use one of the names in the hint."


class AmbiguousName(BadInput):
    """A name in the request belongs to several things."""

    code = "ambiguous_name"
    remedy = "Use one of the ids in the hint."


class NotAuthenticated(TeraflockError):
    """The request has no API key, or the key is unknown, expired or revoked."""

    code = "not_authenticated"
    remedy = "Send `Authorization: Bearer KEY` with a valid key."


class Forbidden(TeraflockError):
    """The key is valid, but its role does not allow this."""

    code = "forbidden"
    remedy = "Use a key with the permission, or ask an owner of the organisation for a role that has it."


class NotFound(TeraflockError):
    """The thing does not exist, or it belongs to another tenant."""

    code = "not_found"
    remedy = "Check the id or name, and the project."


class Conflict(TeraflockError):
    """The thing already exists, or its current state does not allow this."""

    code = "conflict"
    remedy = "Look at the current state, then try again."


class TooMany(TeraflockError):
    """A limit on requests was reached."""

    code = "too_many"
    remedy = "Wait for the time in `Retry-After`, then try again."


class Refused(TeraflockError):
    """The request was understood and not carried out, because something would be lost or is not supported."""

    code = "refused"
    remedy = "Follow the hint."


class QuotaReached(Refused):
    """The project or the organisation has reached its quota."""

    code = "quota_reached"
    remedy = (
        "Delete something, or ask an owner (project quota) or the operator (organisation quota) for more."
    )


class BrokenSource(TeraflockError):
    """A file or a download is not what it claims to be."""

    code = "broken_source"
    remedy = "Check the file, or download it again."


class Unavailable(TeraflockError):
    """Something that is needed does not answer, or is busy."""

    code = "unavailable"
    remedy = "Try again after `Retry-After`. The operator runs `tera doctor`."


class StorageFailed(TeraflockError):
    """The database cannot be read or written."""

    code = "storage_failed"
    remedy = "Try again. The operator runs `tera doctor`, which checks the database and the disk."


def unknown_name(kind: str, name: str, known: Iterable[str], *, see: str = "") -> UnknownName:
    """Build an `UnknownName` whose hint suggests the most similar known names, or lists all of them if they are few."""
    known = list(known)
    hint = f"{suggestion(name, known)} {see}".strip()
    if not hint and 0 < len(known) <= KNOWN_NAMES_MAX:
        hint = f"Known: {', '.join(f'`{each}`' for each in sorted(known))}"
    return UnknownName(f"Unknown {kind} `{name}`", hint=hint)


def one_of(kind: str, word: str, words: Sequence[str]) -> None:
    """Raise `UnknownName` unless the word is one of `words`."""
    if word not in words:
        options = f"Use one of {', '.join(f'`{each}`' for each in words)}"
        raise unknown_name(kind, word, words, see=options)


def not_found(kind: str, name: str, known: Iterable[str], *, see: str = "") -> NotFound:
    """Build a `NotFound` that suggests similar names. Use it only where the caller may see all names in `known`."""
    return NotFound(f"There is no {kind} `{name[:80]}`", hint=f"{suggestion(name, known)} {see}".strip())


def suggestion(name: str, known: Iterable[str]) -> str:
    near = nearest_names(name, known)
    return f"Did you mean {listed(near)}?" if near else ""


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


def listed(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]
