"""What purchases cost by time: each fee spread evenly over the time it was paid for, floored from its beginning.

What holds:
- what of all fees belongs to a month is split between the usage they covered and the rest, and adds up to it;
- a purchase that is ended early is settled where it ends: what of its fee lay on the time given up is not used, and
  belongs to the month of the end; what is given back stands beside it;
- what turns out later of a month that was invoiced moves between used and not used, and adds up to nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from teraflock.bill.purchase.model import Purchase, Term

Bought = Mapping[str, tuple[Purchase, Sequence[Term]]]
"""Purchases by their id, with all their terms."""


class Unused(NamedTuple):
    purchase_id: str
    from_us: int
    until_us: int
    micros: int
    us: int
    """So much of the time that was paid for."""
    is_late: bool
    """It corrects what was said of a month before."""


class Amortised:
    def __init__(self, bought: Bought, from_us: int, until_us: int) -> None:
        self._from_us, self._until_us = from_us, until_us
        self._spreads = {id: _Spread(terms) for id, (_, terms) in bought.items()}
        self._used: dict[str, int] = {}
        self._used_us: dict[str, int] = {}
        self._late: dict[str, Unused] = {}

    def used(self, purchase_id: str, from_us: int, until_us: int, sign: int = 1) -> int:
        """What of the fees lies on this time, which is noted as used; a `sign` of -1 takes that back."""
        micros = sign * self._spreads[purchase_id].micros(from_us, until_us)
        if from_us < self._from_us:
            before = self._late.get(purchase_id, Unused(purchase_id, from_us, until_us, 0, 0, True))
            self._late[purchase_id] = before._replace(
                from_us=min(before.from_us, from_us), until_us=max(before.until_us, until_us),
                micros=before.micros - micros, us=before.us - sign * (until_us - from_us),
            )  # fmt: skip
        else:
            self._used[purchase_id] = self._used.get(purchase_id, 0) + micros
            self._used_us[purchase_id] = self._used_us.get(purchase_id, 0) + sign * (until_us - from_us)
        return micros

    def unused(self) -> Iterator[Unused]:
        """What of the fees of the month lies on no usage, once all of that was noted."""
        for purchase_id, spread in self._spreads.items():
            micros = spread.micros(self._from_us, self._until_us) - self._used.get(purchase_id, 0)
            us = spread.us(self._from_us, self._until_us) - self._used_us.get(purchase_id, 0)
            if us > 0:
                from_us, until_us = max(self._from_us, spread.from_us), min(self._until_us, spread.until_us)
                yield Unused(purchase_id, from_us, until_us, micros, us, False)
        yield from (late for late in self._late.values() if late.micros)


class _Spread:
    """The terms of one purchase."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._paid = [term for term in terms if term.kind != "ended" and term.until_us > term.from_us]
        self._whole = [term for term in self._paid if term.kind != "upgraded"]
        self._ended_us = next((term.from_us for term in terms if term.kind == "ended"), None)
        self.from_us = min(term.from_us for term in self._paid)
        self.until_us = max(term.until_us for term in self._paid)

    def micros(self, from_us: int, until_us: int) -> int:
        return sum(
            self._until(term, term.fee_micros, until_us) - self._until(term, term.fee_micros, from_us)
            for term in self._paid
        )

    def us(self, from_us: int, until_us: int) -> int:
        """Of the time that was paid for; an upgrade pays more for the same time."""
        lengths = [(term, term.until_us - term.from_us) for term in self._whole]
        return sum(
            self._until(term, length, until_us) - self._until(term, length, from_us)
            for term, length in lengths
        )

    def _until(self, term: Term, whole: int, us: int) -> int:
        """What of a term belongs to the time up to here."""
        if self._ended_us is not None and us > self._ended_us:
            return whole
        inside = min(max(us, term.from_us), term.until_us) - term.from_us
        return whole * inside // (term.until_us - term.from_us)
