"""The proof of prices of bids, on results and events made by hand."""

import msgspec

from teraflock.bill.price.model import PriceBook
from teraflock.bill.verify.bids import Auctions
from teraflock.bill.verify.row import Named


def result(at_us: int, host: str, price: int) -> Named:
    """The instance `a` wins against one lower bid, whose bid it pays."""
    size = {"gpus": 1, "vcpus": 1, "ram_bytes": 1, "is_firm": False}
    won = {"id": "a", "bid": 9, "won": True, "price": price, **size}
    lost = {"id": f"other-{host}", "bid": price, "won": False, "price": None, **size}
    return {
        "id": f"auc-{at_us}", "at_us": at_us, "host_id": host, "region": "", "gpu": "V100", "floor_micros": 0,
        "price_micros": price, "entries": msgspec.json.encode([won, lost]),
    }  # fmt: skip


def event(at_us: int, host: str, price: int) -> Named:
    return {
        "at_us": at_us, "sequence": at_us, "mode": "bid", "to": "running", "bid_micros_per_hour": 9,
        "card_micros_per_hour": price, "gpu": "V100", "host": host, "region": "",
    }  # fmt: skip


def test_an_instance_that_moved_pays_what_its_new_host_says() -> None:
    rows = [result(30, "one", 7), result(10, "two", 5)]  # in the order of hosts, as they are read
    auctions = Auctions(rows, PriceBook([]))
    assert auctions.faults == []
    moved = [event(10, "two", 5), event(30, "one", 7)]
    assert list(auctions.check("a", moved)) == []
    wrong = Auctions(rows, PriceBook([])).check("a", [*moved, event(40, "one", 5)])
    assert [each.what for each in wrong] == ["no auction at 40 decided the price 5"]
