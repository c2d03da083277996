"""A lab sells idle GPUs to bids, from the command line, with the simulated engine."""

import time
from typing import Any

import pytest
from tests.story.cloud import Cloud

BOOK = """\
- from: 2020-01-01
  currency: USD
  gpu: {V100: {on-demand: 3/hour, spot: 1/hour}}
  disk: 0.1/month
"""


@pytest.fixture(scope="module")
def cloud(cloud: Cloud) -> Cloud:
    book = cloud.home.parent / "prices.yaml"
    book.write_text(BOOK, encoding="utf-8")
    cloud.ok("price", "set", book)
    return cloud


def test_bid_is_launched_changed_and_its_price_published(cloud: Cloud) -> None:
    assert "No auction has taken place" in cloud.ok("bids").err
    launched = cloud.ok(
        "launch", "--name", "train", "--gpu", "V100", "--mode", "bid", "--bid", "1.5", "--wait"
    )
    assert "running" in launched.out
    assert cloud.ok("bid", "train", "2").out == "train: bids 2.0000 per GPU and hour, pays 1.0000\n"
    seen = cloud.ok("show", "train", "--json").json
    assert (seen["mode"], seen["bid_micros_per_hour"], seen["card_micros_per_hour"]) == (
        "bid",
        2_000_000,
        1_000_000,
    )
    assert "bids 2.0000 per GPU and hour" in cloud.ok("show", "train").out
    newest = first_auction(cloud)
    cloud.ok("delete", "train", "--yes")
    assert (newest["gpu"], newest["price_micros_per_hour"]) == ("V100-SXM2", 1_000_000)
    assert {"host", "host_id", "entries"}.isdisjoint(newest), "the history names no host and no bidder"
    assert "V100-SXM2" in cloud.run("bids", columns=60).out
    cloud.ok("bill", "verify")


def first_auction(cloud: Cloud) -> Any:
    """The loop holds an auction in its next turn, not at the launch."""
    for _ in range(100):
        if found := cloud.ok("bids", "--gpu", "V100", "--json").json:
            return found[0]
        time.sleep(0.1)
    pytest.fail("no auction was held")


def test_wrong_bids_are_refused_with_a_hint(cloud: Cloud) -> None:
    low = cloud.fails("launch", "--gpu", "V100", "--mode", "bid", "--bid", "0.5")
    assert (low.code, "costs at least 1.00 USD per card and hour" in low.err) == (2, True)
    assert "Add `--gpu MODEL`" in cloud.fails("launch", "--mode", "bid", "--bid", "2").hint
    assert cloud.fails("launch", "--gpu", "V100", "--mode", "bid").code == 2
    assert cloud.fails("bid", "nobody", "0").code == 2
    assert "no instance `nobody`" in cloud.fails("bid", "nobody", "2").err
    assert "card" in cloud.fails("bids", "--gpu", "no-such-card").err
