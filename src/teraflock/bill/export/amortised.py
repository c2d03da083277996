"""What purchases cost by time: each fee spread evenly over the time it was paid for, floored from its beginning.

What is spread over a month is split between the usage it covered and the rest, so that effective costs of a month add
up to what of all fees belongs to it. A month that was ended early is spread as if it had not been; the refund stands
beside it.
"""

from collections.abc import Iterator, Sequence

from teraflock.bill.purchase.model import Term


class Amortised:
    def __init__(self, terms: Sequence[Term], from_us: int, until_us: int) -> None:
        self._by_purchase: dict[str, list[Term]] = {}
        self._from_us, self._until_us = from_us, until_us
        self._used: dict[str, int] = {}
        for term in terms:
            if term.fee_micros and term.until_us > term.from_us:
                self._by_purchase.setdefault(term.purchase_id, []).append(term)

    def used(self, purchase_id: str, from_us: int, until_us: int) -> int:
        """What of the fees lies on this time, which is noted as used."""
        micros = self._between(purchase_id, from_us, until_us)
        self._used[purchase_id] = self._used.get(purchase_id, 0) + micros
        return micros

    def unused(self) -> Iterator[tuple[str, int, int, int]]:
        """What of the fees of the month lies on no usage."""
        for purchase_id, terms in self._by_purchase.items():
            whole = self._between(purchase_id, self._from_us, self._until_us)
            left = whole - self._used.get(purchase_id, 0)
            if left:
                from_us = max(self._from_us, min(term.from_us for term in terms))
                until_us = min(self._until_us, max(term.until_us for term in terms))
                yield purchase_id, from_us, until_us, left

    def _between(self, purchase_id: str, from_us: int, until_us: int) -> int:
        return sum(
            _spread(term, until_us) - _spread(term, from_us)
            for term in self._by_purchase.get(purchase_id, ())
        )


def _spread(term: Term, us: int) -> int:
    """What of a fee belongs to the time up to here."""
    inside = min(max(us, term.from_us), term.until_us) - term.from_us
    return term.fee_micros * inside // (term.until_us - term.from_us)
