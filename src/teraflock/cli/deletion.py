"""Deleting something that has a name: ask, delete it, and say so."""

from typing import Protocol, TypeVar

from teraflock.cli.confirm import confirm
from teraflock.cli.output import tell


class NamedAnswer(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


Answer = TypeVar("Answer", bound=NamedAnswer, covariant=True)


class DeletableNoun(Protocol[Answer]):
    """A noun of the client."""

    def get(self, ref: str, /) -> Answer: ...

    def delete(self, ref: str, /) -> None: ...


def delete_named(noun: DeletableNoun[NamedAnswer], name: str, kind: str, *, yes: bool, as_json: bool) -> None:
    """`kind` is the word for it, such as `network`."""
    found = noun.get(name)
    if not yes:
        confirm(f"Delete the {kind} `{found.name}`?", "Deleting")
    noun.delete(found.id)
    tell(found, f"Deleted {kind} `{found.name}`", as_json)
