"""A minimal SQL parser: it finds `:names` and the ends of statements.

It skips strings, quoted names, comments and `::` casts, so a `:`, `%` or `;` inside them has no effect.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, cast

from teraflock.storage.database import Misuse, Rows

# Compiled on first use, which takes half a millisecond. Reading from SQLite never needs it.
_TOKENS: Final = r"""(?sx)
      '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | --[^\n]*
    | /\*.*?\*/
    | ::
    | :(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<end>;)
"""

STATEMENTS_CACHED_MAX: Final = 1024  # far more than our SQL texts; limits the ones built from filters


class Parsed(NamedTuple):
    names: tuple[str, ...]
    """In the order of their first occurrence, each once."""
    order: tuple[int, ...]
    """For each placeholder in the SQL, the index of its name."""
    questions: str
    """The SQL with `?` as placeholders, for SQLite with sequences."""
    dollars: bytes
    """The SQL with `$1`, `$2` … as placeholders, for PostgreSQL."""

    def values(self, given: Mapping[str, object]) -> tuple[object, ...]:
        """The values in the order of the names. Raises if one is missing or unknown."""
        if len(given) == len(self.names):
            with suppress(KeyError):
                return tuple([given[name] for name in self.names])
        raise Misuse(f"the SQL needs the values {sorted(self.names)}, but got {sorted(given)}")

    def sequences(self, rows: Rows) -> Iterator[Sequence[object]]:
        """Rows of either form as sequences in the order of the names. The first row determines the form."""
        remaining = iter(rows)
        for first in remaining:
            every = chain([first], remaining)
            if isinstance(first, Mapping):
                return map(self.values, cast("Iterator[Mapping[str, object]]", every))
            return cast("Iterator[Sequence[object]]", every)
        return iter(())

    def in_place(self, values: Sequence[object]) -> Sequence[object]:
        """Values in the order of the names → one for each `?`."""
        if len(self.order) == len(self.names):
            return values
        return [values[index] for index in self.order]


@lru_cache(maxsize=STATEMENTS_CACHED_MAX)
def parsed(sql: str) -> Parsed:
    if len(list(statements(sql))) > 1:  # SQLite refuses it, but PostgreSQL would run them all
        raise Misuse("one statement at a time")
    indexes: dict[str, int] = {}
    order: list[int] = []
    questions: list[str] = []
    dollars: list[str] = []
    at = 0
    for token in re.finditer(_TOKENS, sql):
        if name := token["name"]:
            order.append(indexes.setdefault(name, len(indexes)))
            between = sql[at : token.start()]
            questions += between, "?"
            dollars += between, f"${order[-1] + 1}"
            at = token.end()
    rest = sql[at:]
    return Parsed(
        names=tuple(indexes),
        order=tuple(order),
        questions="".join([*questions, rest]),
        dollars="".join([*dollars, rest]).encode(),
    )


def statements(script: str) -> Iterator[str]:
    """The statements of a script, without `;`. Skips parts with only space and comments."""
    start = 0
    for token in re.finditer(_TOKENS, script):
        if token["end"]:
            yield from _if_any(script[start : token.start()])
            start = token.end()
    yield from _if_any(script[start:])


def _if_any(statement: str) -> Iterator[str]:
    bare = re.sub(_TOKENS, lambda token: "" if token[0].startswith(("--", "/*")) else token[0], statement)
    if bare.strip():
        yield statement.strip()
