"""A lab sets prices: quotes, prices of instances, a bill and its verification, a budget, credits, an export."""

import csv
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.story.cloud import Cloud, told

PRICES = """\
- from: 2026-01-01
  currency: USD
  gpu: {V100: {on-demand: 3.06/hour, monthly: 2233/month, spot: 1.06/hour}}
  vcpu: 36000/hour   # ten a second: a story has no time to wait for cents
  disk: 0.1/month
  reserved: {1 year: 25%}
  refund: 50%
  tax: {VAT: 20%}
"""


@pytest.fixture(scope="module")
def prices(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert "There are no prices yet" in cloud.fails("price").err
    assert cloud.ok("launch", "--name", "free", "--wait").err.count("Costs") == 0
    cloud.ok("delete", "free", "--yes")
    path = tmp_path_factory.mktemp("prices") / "prices.yaml"
    path.write_text(PRICES)
    return path


def until(cloud: Cloud, holds: Any, *words: str) -> Any:
    """Poll until it is true. The billing loop runs every two seconds."""
    for _ in range(100):
        answer = told(cloud, *words)
        if holds(answer):
            return answer
        time.sleep(0.2)
    raise AssertionError(answer)


def test_invalid_price_book_is_refused(cloud: Cloud, prices: Path) -> None:
    broken = prices.with_name("broken.yaml")
    broken.write_text(PRICES.replace("0.1/month", "-0.1/month"))
    assert "line 5" in cloud.fails("price", "set", broken).err
    assert "There are no prices yet" in cloud.fails("price").err


def test_from_quote_to_bill(cloud: Cloud, prices: Path) -> None:
    assert "Version 1 applies from" in cloud.ok("price", "set", prices).err
    assert "vCPU" in cloud.ok("price").out
    quote = told(cloud, "quote", "--vcpus", "2")
    assert quote["micros_per_hour"] >= 72_000 * 10**6
    card = told(cloud, "quote", "--gpu", "V100", "--vcpus", "1")["micros_per_hour"]
    spot = told(cloud, "quote", "--gpu", "V100", "--vcpus", "1", "--spot")["micros_per_hour"]
    assert card - spot == 2_000_000
    same = told(cloud, "quote", "--gpu", "V100", "--vcpus", "1", "--mode", "spot")["micros_per_hour"]
    assert same == spot
    assert "contradict" in cloud.fails("quote", "--spot", "--mode", "on-demand").err
    cloud.ok("launch", "--name", "cheap", "--gpu", "V100", "--vcpus", "1", "--spot", "--yes", "--wait")
    (cheap,) = until(cloud, lambda all: all[0]["cost"] is not None, "ps")
    assert cheap["cost"]["micros_per_hour"] == spot, "the price shown is the price paid"
    cloud.ok("delete", "cheap", "--yes")
    assert "needs confirmation" in cloud.fails("launch", "--name", "dear", "--vcpus", "2").err
    launched = cloud.ok("launch", "--name", "dear", "--vcpus", "2", "--yes", "--wait")
    assert "USD/h" in launched.err
    bill = until(cloud, lambda bill: bill["unbooked_micros"] > 0, "bill")
    assert bill["currency"] == "USD"
    until(cloud, lambda all: all[0]["name"] == "dear" and all[0]["cost"] is not None, "ps")
    assert "USD/h" in cloud.ok("ps").out
    stopped = cloud.ok("stop", "dear")
    assert "`dear` has cost" in stopped.err
    bill = until(
        cloud, lambda bill: "dear" in {group["name"] for group in bill["groups"]}, "bill", "--by", "instance"
    )
    lines = told(cloud, "bill", "lines")
    assert sum(line["micros"] for line in lines) == bill["micros"]
    assert "all match the events exactly" in cloud.ok("bill", "verify").err
    rows = list(csv.DictReader(cloud.ok("bill", "export", "--focus").out.splitlines()))
    assert sum(round(float(row["BilledCost"]) * 10**6) for row in rows) == bill["micros"]
    cloud.ok("delete", "dear", "--yes")


def test_credits_and_a_budget(cloud: Cloud, prices: Path) -> None:
    cloud.ok("credits", "give", "5", "--reason", "sign-up", "--expires", "2099-01-01")
    assert told(cloud, "credits")[0]["micros"] == 5_000_000
    set_low = cloud.ok("budget", "set", "0.01")
    assert "you cannot launch instances" in set_low.err
    refused = cloud.fails("launch", "--name", "more", "--yes")
    assert "is spent" in refused.err
    cloud.ok("budget", "remove")
    assert json.loads(cloud.ok("billing", "--json").out)["currency"] == "USD"
    assert "is not over" in cloud.fails("invoice", "issue", "2099-01").err


def test_the_operator_sees_what_hosts_cost_beside_revenue(cloud: Cloud, prices: Path) -> None:
    assert "No cost is set" in cloud.ok("host", "cost", "list").err
    host = told(cloud, "host", "list")[0]["name"]
    made = told(cloud, "host", "cost", "set", host, "3600", "usd")
    assert (made["host"], made["micros_per_hour"], made["currency"]) == (host, 3_600_000_000, "USD")
    found = until(
        cloud, lambda found: found["totals"][0]["cost_micros"] > 0, "bill", "margin", "--by", "host"
    )
    (row,) = [each for each in found["rows"] if each["name"] == host]
    assert row["margin_micros"] == row["revenue_micros"] - row["cost_micros"]
    assert cloud.ok("bill", "--margin", "--json").json.keys() == found.keys()
    table = cloud.ok("bill", "margin", "--by", "host").out
    assert table.split()[:5] == ["NAME", "REVENUE", "COST", "IDLE", "MARGIN"]
    assert host in table
    assert f"{host}: removed from" in cloud.ok("host", "cost", "remove", host).err
    assert [each["micros_per_hour"] for each in told(cloud, "host", "cost", "list", host)] == [
        3_600_000_000,
        None,
    ]
    assert "is not a date" in cloud.fails("host", "cost", "set", host, "1", "USD", "--from", "soon").err
    assert "XQX" in cloud.fails("host", "cost", "set", host, "1", "XQX").err
    assert "is not an amount" in cloud.fails("host", "cost", "set", host, "free", "USD").err
    assert told(cloud, "bill", "verify")["sound"]
