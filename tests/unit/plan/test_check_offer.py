"""The checker computes the place, date and price of a shown offer again, and finds each fault."""

import pytest
from msgspec.structs import replace

from teraflock.base.money import Price
from teraflock.catalog.places import place_filter
from teraflock.offer.model import Offer, Shape
from teraflock.plan.check_offer import offer_faults
from teraflock.plan.model import Choice, Cost, Hours, Wish

OFFER = Offer(
    source="s", provider="aws", kind="gpu", standing="priced", region="us-east-1", zone="use1-az1",
    instance_type="p3.2xlarge", gpu="V100-SXM2", gpu_count=2, mode="on-demand", currency="USD",
    quoted=Price(3_000_000, "USD", "hour"), basis="gpu", price_micros_per_month=2 * 3_000_000 * 730, as_of="2026-08-22",
)  # fmt: skip
SHAPE = Shape(
    provider="aws", instance_type="p3.2xlarge", kind="gpu", gpu="V100-SXM2", gpu_name="", gpu_count=2, gpu_share=1.0,
    gpu_memory_bytes=None, vcpus=None, ram_bytes=None, mode="on-demand", term_months=None, standing="priced",
    currency="USD", doubtful=False, price_micros_per_month=2 * 3_000_000 * 730, offers=1, as_of="2026-08-22",
)  # fmt: skip
WISH = Wish(use="hours", hours=1.0, places=place_filter(("US",), (), ("europe",)), newer_than="2026-01-01")


def faults(offer: Offer | None, wish: Wish = WISH, shape: Shape = SHAPE) -> list[str]:
    cost = Cost(1, 1, 1, "USD")
    choice = Choice(shape=shape, hours=Hours(1, 1, 1), cost=cost, parts=(), interruptions=0.0, offer=offer)
    return list(offer_faults(choice, wish))


def test_a_right_offer_has_no_faults() -> None:
    assert faults(OFFER) == []
    assert faults(OFFER, replace(WISH, places=place_filter(("us-east-1", "EU"), ("US",), ()))) == []


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        replace(OFFER, region="eu-south-2", zone="eus2-az1"),
        replace(OFFER, region="", zone=""),
        replace(OFFER, as_of="2025-12-31"),
        replace(OFFER, as_of=""),
        replace(OFFER, outdated=True),
        replace(OFFER, quoted=Price(3_000_001, "USD", "hour")),
        replace(OFFER, quoted=Price(3_000_000, "CNY", "hour")),
        replace(OFFER, basis="instance"),
        replace(OFFER, gpu_count=4),
        replace(OFFER, price_micros_per_month=1),
    ],
)
def test_the_checker_finds_every_wrong_offer(wrong: Offer | None) -> None:
    assert faults(wrong) != []


@pytest.mark.parametrize("day", ["2025-12-31", "2025", ""])
def test_a_price_that_is_too_old_is_a_fault_also_where_the_shape_agrees(day: str) -> None:
    old = replace(OFFER, as_of=day)
    assert faults(old, shape=replace(SHAPE, as_of=day)) == [
        "offer aws p3.2xlarge us-east-1: its price is older than 2026-01-01"
    ]


@pytest.mark.parametrize("area", ["US", "north america", "us-east-1", "virginia"])
def test_an_excluded_place_is_a_fault(area: str) -> None:
    assert faults(OFFER, replace(WISH, places=place_filter((), (), (area,)))) != []
