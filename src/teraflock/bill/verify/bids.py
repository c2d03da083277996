"""Checks the prices of bids again: each result of an auction, and that every instance pays what a result says.

It implements the rules in the head of instance/bid/rules.py a second time, on the stored results.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil

import msgspec

from teraflock.bill.price.model import PriceBook, PricedPeriod, PricePlace
from teraflock.bill.verify.check import Fault
from teraflock.bill.verify.row import Named, Said

AMOUNTS = ("gpus", "vcpus", "ram_bytes")


class Auctions:
    """All results, by the instances that took part."""

    def __init__(self, rows: Iterable[Named], book: PriceBook) -> None:
        self._book = book
        self.faults: list[Fault] = []
        self._entries: dict[str, list[tuple[int, Named]]] = {}
        """Time and entry, by instance."""
        for row in rows:
            entries = msgspec.json.decode(row["entries"])
            self.faults += _check_result(
                row, entries, self._floor(row["gpu"], row["host_id"], row["region"], row["at_us"])
            )
            for entry in entries:
                self._entries.setdefault(entry["id"], []).append((row["at_us"], entry))

    def check(self, instance_id: str, events: Sequence[Said]) -> Iterator[Fault]:
        """The bids and prices in the events of an instance are those of the results."""
        changes = [said for said in events if "sequence" in said and said.get("mode") == "bid"]
        # rows are in the order of hosts, and it may have moved to another one
        results = sorted(self._entries.pop(instance_id, []), key=lambda each: each[0])
        where = f"auction {instance_id}"
        for at_us, entry in results:
            known = [said["bid_micros_per_hour"] for said in changes if said["at_us"] <= at_us]
            if entry["price"] is not None and (not known or known[-1] != entry["bid"]):
                yield Fault(where=where, what=f"its bid at {at_us} was not {entry['bid']}")
        paid = 0
        for said in changes:
            price = said["card_micros_per_hour"]
            applying = [entry["price"] for at_us, entry in results if at_us <= said["at_us"]]
            if price != paid and applying[-1:] != [price]:
                floor = self._floor(said["gpu"], said["host"], said["region"], said["at_us"])
                if price != floor:  # a new or returning instance pays the floor until the next result
                    yield Fault(where=where, what=f"no auction at {said['at_us']} decided the price {price}")
            if price > said["bid_micros_per_hour"] and said["to"] in ("running", "changing"):
                yield Fault(where=where, what=f"pays {price}, more than its bid")
            paid = price

    def _floor(self, gpu: str, host: str, region: str, at_us: int) -> int:
        period = self._book.at(at_us)
        if period is None:
            return 0
        month = PricedPeriod(period, self._book.currency).units(gpu, "spot", PricePlace(host, region)).gpu
        return ceil(Fraction(month, 730))


def _check_result(row: Named, entries: Sequence[Named], floor: int) -> Iterator[Fault]:
    where = f"auction {row['id']}"
    if row["floor_micros"] != floor:
        yield Fault(where=where, what=f"the floor is {row['floor_micros']}, must be {floor}")
    won = [each for each in entries if each["won"]]
    lost = [each for each in entries if not each["won"]]
    for each in won:
        rivals = [other for other in lost if other["bid"] <= each["bid"] or _fits_instead(other, each)]
        due = max([floor, *(min(other["bid"], each["bid"]) for other in rivals)])
        if each["price"] is not None and each["price"] != due:
            yield Fault(where=where, what=f"{each['id']} pays {each['price']}, must pay {due}")
        beaten = [other for other in lost if other["bid"] > each["bid"] and _fits_instead(other, each)]
        if beaten and not each["is_firm"]:
            yield Fault(where=where, what=f"{each['id']} won against a higher bid")
    highest = max([floor, *(each["price"] or 0 for each in won)])
    if row["price_micros"] != highest:
        yield Fault(where=where, what=f"the price is {row['price_micros']}, must be {highest}")


def _fits_instead(loser: Named, winner: Named) -> bool:
    return all(loser[name] <= winner[name] for name in AMOUNTS)
