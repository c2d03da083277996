"""Amortises purchases: spreads each fee evenly over the time it pays for, rounded down from its start.

Invariants:
- the fees of a month are split into the usage that they covered and the unused rest, and both add up to them;
- a purchase that ends early is settled at its end: the fee for the remaining time is unused and belongs to the month of
  the end; the refund is a separate row;
- later corrections of an invoiced month move amounts between used and unused, and add up to 0.
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
    """The unused part of the paid time."""
    is_late: bool
    """Whether it corrects an earlier month."""


class Amortised:
    def __init__(self, bought: Bought, from_us: int, until_us: int) -> None:
        self._from_us, self._until_us = from_us, until_us
        self._spreads = {id: _Spread(terms) for id, (_, terms) in bought.items()}
        self._used: dict[str, int] = {}
        self._used_us: dict[str, int] = {}
        self._late: dict[str, Unused] = {}

    def used(self, purchase_id: str, from_us: int, until_us: int, sign: int = 1) -> int:
        """The part of the fees for this time. Records the time as used; a `sign` of -1 reverses that."""
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
        """The part of the month's fees without usage. Call it after all usage is recorded."""
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
        """Paid time within this period. An upgrade pays more for the same time, so it does not count."""
        lengths = [(term, term.until_us - term.from_us) for term in self._whole]
        return sum(
            self._until(term, length, until_us) - self._until(term, length, from_us)
            for term, length in lengths
        )

    def _until(self, term: Term, whole: int, us: int) -> int:
        """The part of a term that belongs to the time up to `us`."""
        if self._ended_us is not None and us > self._ended_us:
            return whole
        inside = min(max(us, term.from_us), term.until_us) - term.from_us
        return whole * inside // (term.until_us - term.from_us)
