"""The life-cycle of rows: a table of the changes of state that are allowed, and the one statement that makes them.

A statement changes only rows in a state that may become the new one. So a decision that comes late, such as "it is
built" about an image that was deleted meanwhile, changes nothing. A state that was reached is never written again,
unless the table lists it under itself.
"""

from collections.abc import Mapping, Set
from enum import StrEnum
from typing import Generic, TypeVar

from teraflock.storage.database import Transaction
from teraflock.storage.table import among

S = TypeVar("S", bound=StrEnum)


class LifeCycle(Generic[S]):
    """The column `state` of a table. Nothing else writes it, except for the INSERT."""

    def __init__(self, table: str, moves: Mapping[S, Set[S]]) -> None:
        self.table = table
        self.moves = moves

    def move(
        self,
        tx: Transaction,
        after: S,
        where: str,
        /,
        *,
        columns: Mapping[str, object] | None = None,
        **values: object,
    ) -> int:
        """Give the rows `where` a state, and new values in other columns. Return how many rows changed."""
        new = {"state": str(after), **(columns or {})}
        return tx.run(
            f"UPDATE {self.table} SET {', '.join(f'{name} = :new_{name}' for name in new)}"
            f" WHERE state IN {among(self.before(after))} AND ({where})",
            **{f"new_{name}": value for name, value in new.items()},
            **values,
        )

    def before(self, after: S) -> frozenset[S]:
        """The states that may become this one."""
        return frozenset(state for state, following in self.moves.items() if after in following)
