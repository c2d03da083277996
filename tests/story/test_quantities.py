"""Snapshots and traffic to the internet are charged at the quoted prices of their region."""

from pathlib import Path

from tests.story.cloud import Cloud, told
from tests.story.test_billing import until

GB = 1 << 30
PRICES = """\
- from: 2026-01-01
  currency: USD
  snapshot: 7300/month
  egress: 50
  regions: {north: {egress: 90}}
"""


def test_snapshots_traffic_and_regions(cloud: Cloud, tmp_path: Path) -> None:
    book = tmp_path / "prices.yaml"
    book.write_text(f"{PRICES}  postage: 0.004/hour\n")
    assert "unknown name `postage`" in cloud.fails("price", "set", book).err
    book.write_text(PRICES)
    cloud.ok("price", "set", book)
    host = told(cloud, "host", "list")[0]["name"]
    assert "region north" in cloud.ok("host", "set", host, "--region", "north").out
    assert "is not a valid name for a region" in cloud.fails("host", "set", host, "--region", "No rth").err
    assert told(cloud, "host", "show", host)["region"] == "north"
    quote = told(cloud, "quote")
    assert (quote["egress_micros_per_gb"], quote["snapshot_micros_per_gb"]) == (90_000_000, 7_300_000_000)
    cloud.ok("launch", "--name", "box", "--host", host, "--wait", "--yes")
    cloud.ok("exec", "box", "--", "send", "2GB")
    cloud.ok("exec", "box", "--", "fill", "3GB")
    cloud.ok("snapshot", "box", "before")
    (kept,) = until(cloud, lambda all: all[0]["state"] == "ready", "snapshot", "box")
    assert kept["size_bytes"] == 3 * GB
    assert "3 GB" in cloud.ok("snapshot", "box").out
    cloud.ok("stop", "box", "--wait")
    bill = until(cloud, lambda bill: bill["unbooked_micros"] >= 180_000_000, "bill")
    assert bill["unbooked_micros"] < 182_000_000, (
        "two GB at the price of the region, and seconds of a snapshot"
    )
    (box,) = until(cloud, lambda all: all[0]["cost"]["micros_per_hour"] == 30_000_000, "ps")
    assert box["cost"]["micros"] >= 180_000_000, "the snapshot is charged while the instance is stopped"
    cloud.ok("snapshot", "box", "before", "--delete")
    until(cloud, lambda all: all[0]["cost"]["micros_per_hour"] == 0, "ps")
    assert "all match the events exactly" in cloud.ok("bill", "verify").err
