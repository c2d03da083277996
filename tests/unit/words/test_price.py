"""`tera price` shows every price and condition of the book, with digits that are right."""

from datetime import UTC, datetime

from teraflock.api.routes.price import prices_answer
from teraflock.bill.price.model import FOREVER_US, Period, PriceSheet, PriceTable, Unit
from teraflock.words.price import conditions, fields
from teraflock.words.table import cells

BOOK = PriceSheet(
    currency="USD",
    rates={},
    general=PriceTable(
        vcpu=Unit(on_demand=36_500_000),
        disk=Unit(on_demand=100_000),
        snapshot=Unit(on_demand=50_000),
        address=Unit(on_demand=3_650_000),
        egress=50_000,
    ),
    regions={"north": PriceTable(snapshot=Unit(on_demand=60_000))},
    monthly_bp=3000,
    spot_bp=6000,
    reserved_bp={1: 2500},
    upfront_bp=500,
    refund_bp=5000,
)
ANSWER = prices_answer(Period(version=1, from_us=0, until_us=FOREVER_US, prices=BOOK))


def test_every_price_is_listed_and_images_and_data_cost_as_snapshots() -> None:
    months = {(each.what, each.place): each.on_demand_micros_per_month for each in ANSWER.items}
    assert months["address", ""] == 3_650_000
    assert months["image", ""] == months["data", ""] == months["snapshot", ""] == 50_000
    assert months["image", "region north"] == 60_000


def test_an_image_price_of_the_whole_book_hides_the_snapshot_price_of_a_region() -> None:
    general = PriceTable(image=Unit(on_demand=70_000))
    book = PriceSheet(currency="USD", rates={}, general=general, regions=BOOK.regions)
    items = prices_answer(Period(version=1, from_us=0, until_us=FOREVER_US, prices=book)).items
    assert [each.place for each in items if each.what == "image"] == [""]


def test_small_hourly_prices_have_enough_digits() -> None:
    rows = {row[0]: row[1] for row in (cells(fields("USD"), each) for each in ANSWER.items)}
    assert rows["vCPU"] == "0.0500 USD/h"
    assert rows["GB of disk"] == "0.000137 USD/h"
    assert rows["public address"] == "0.005000 USD/h"


def test_the_conditions_name_every_discount() -> None:
    assert ANSWER.starts_at == datetime(1970, 1, 1, tzinfo=UTC)
    assert conditions(ANSWER)[1:] == [
        "60% off GPUs, vCPUs and memory of spot instances",
        "30% off a month paid ahead",
        "a further 25% off if reserved for 1 year",
        "a further 5% off if paid upfront",
        "50% of the rest is refunded if a month ends early",
    ]
