"""How much of the server one organisation can use at a time, so that the others get their share.

Invariants: an organisation has at most `each` of `most`, and never more than half. Operators do not count towards an
organisation, and the last few of `most` are reserved for them.
"""

import asyncio
from collections import deque
from typing import Final

from teraflock.base.errors import TooMany
from teraflock.tenant.model import Actor

KEPT_OF: Final = 8
"""One in this many is reserved for operators."""
OPERATORS: Final = "operators"


def tenant_of(actor: Actor) -> str:
    return OPERATORS if actor.is_operator else actor.organisation_id


class Shares:
    """Refuses requests beyond the share of an organisation. For long work."""

    def __init__(self, what: str, most: int, each: int, *, hint: str, retry_seconds: int) -> None:
        """`what` is a plural that follows a number in messages: `commands running in instances`."""
        self._what = what
        self._most = most
        self._kept = -(-most // KEPT_OF) if most > 1 else 0
        self._each = min(each, max(1, (most - self._kept) // 2))
        self._hint = hint
        self._retry_seconds = retry_seconds
        self._taken: dict[str, int] = {}
        self.open = 0

    def enter(self, actor: Actor) -> None:
        tenant = tenant_of(actor)
        taken = self._taken.get(tenant, 0)
        if tenant != OPERATORS and taken >= self._each:
            raise self._too_many(f"Your organisation has {taken} {self._what}; the limit is {self._each}")
        if self.open >= self._most - (0 if tenant == OPERATORS else self._kept):
            raise self._too_many(f"The server has {self.open} {self._what} and cannot accept more now")
        self._taken[tenant] = taken + 1
        self.open += 1

    def leave(self, actor: Actor) -> None:
        tenant = tenant_of(actor)
        self.open -= 1
        self._taken[tenant] -= 1
        if not self._taken[tenant]:
            del self._taken[tenant]

    def _too_many(self, sentence: str) -> TooMany:
        return TooMany(sentence, hint=self._hint, context={"retry_after_seconds": self._retry_seconds})


class _Line:
    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


class Turns:
    """Queues requests beyond the share of an organisation. For short work, in one event loop."""

    def __init__(self, each: int, waiting_max: int) -> None:
        self._each = each
        self._waiting_max = waiting_max
        self._lines: dict[str, _Line] = {}

    async def enter(self, tenant: str) -> None:
        line = self._lines.setdefault(tenant, _Line())
        if line.running < self._each:
            line.running += 1
            return
        if len(line.waiting) >= self._waiting_max:
            raise TooMany(
                f"Your organisation has {len(line.waiting)} waiting requests, which is the limit",
                hint="Send fewer at a time",
                context={"retry_after_seconds": 1},
            )
        turn = asyncio.get_running_loop().create_future()
        line.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(tenant)  # its turn came at the same moment
            raise

    def leave(self, tenant: str) -> None:
        """Give the turn to the tenant's next waiting request."""
        line = self._lines[tenant]
        while line.waiting:
            following = line.waiting.popleft()
            if not following.done():
                following.set_result(None)
                return
        line.running -= 1
        if not line.running:
            del self._lines[tenant]

    def __len__(self) -> int:
        return len(self._lines)
