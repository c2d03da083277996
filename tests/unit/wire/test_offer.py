"""Offers as JSON and CSV: the fields are stable, and amounts are exact."""

from datetime import date

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.offer.random_offers import ON, RATES

from teraflock.base.money import Price, divided
from teraflock.offer.model import Offer
from teraflock.wire.gpu import GpuShape, shape_accelerator, shape_card
from teraflock.wire.offer import OfferShape, csv_cells, csv_header, shape_offer

PROMISED = (
    "provider", "region", "instance_type", "gpu", "gpu_count", "gpu_memory_bytes", "gpu_memory_total_bytes", "vcpus",
    "ram_bytes", "mode", "price_micros", "currency", "per", "price_usd_per_hour", "as_of", "source", "flags",
)  # fmt: skip


def offer(**more: object) -> Offer:
    usual: dict[str, object] = {
        "id": -1, "source": "test", "provider": "oci", "instance_type": "BM.GPU3.8", "kind": "gpu", "gpu": "V100-SXM2",
        "gpu_count": 8, "gpu_memory_bytes": 16 << 30, "vcpus": 104.0, "standing": "priced", "currency": "USD",
        "quoted": Price(2_950_000, "USD", "hour"), "basis": "gpu", "price_micros_per_month": 17_228_000_000,
        "flags": ("inferred:name", "price-per-gpu"),
    }  # fmt: skip
    return Offer(**usual | more)  # type: ignore[arg-type]


def shaped(offer: Offer, currency: str = "USD", on: date = ON) -> OfferShape:
    return shape_offer(offer, currency=currency, per="hour", rates=RATES, on=on)


def test_published_fields_exist() -> None:
    assert [name for name in PROMISED if name not in OfferShape.__struct_fields__] == []


def test_offer_is_converted_to_currency_and_period() -> None:
    shape = shaped(offer())
    assert (shape.price_micros, shape.price_per_gpu_micros) == (23_600_000, 2_950_000)
    assert shape.price_usd_per_hour == 23.6
    assert shape.gpu_memory_total_bytes == 128 << 30
    assert shape.vcpus == 104
    assert shape.id == "f" * 16
    assert shape.quoted is not None
    assert msgspec.structs.asdict(shape.quoted) == {
        "price_micros": 2_950_000, "currency": "USD", "per": "hour", "basis": "gpu",
    }  # fmt: skip
    yuan = shaped(offer(), "CNY")
    assert yuan.price_micros == 169_660_400
    assert yuan.price_usd_per_hour == 23.6


def test_unknown_values_are_null() -> None:
    shape = shaped(
        offer(
            standing="unknown", quoted=None, price_micros_per_month=None, gpu="", gpu_count=None, vcpus=None
        )
    )
    assert (shape.price_micros, shape.price_per_gpu_micros, shape.price_usd_per_hour) == (None, None, None)
    assert (shape.quoted, shape.gpu, shape.gpu_memory_total_bytes, shape.vcpus) == (None, None, None, None)
    assert shaped(offer(vcpus=0.5)).vcpus == 0.5


@given(st.integers(0, 10**17), st.integers(1, 100_000))
def test_the_price_of_one_gpu_is_rounded_half_to_even_from_integers(monthly: int, count: int) -> None:
    shape = shape_offer(
        offer(price_micros_per_month=monthly, gpu_count=count),
        currency="USD",
        per="month",
        rates=RATES,
        on=ON,
    )
    assert shape.price_micros == monthly
    assert shape.price_per_gpu_micros == divided(monthly, count)


def test_csv_has_a_cell_for_every_name() -> None:
    for each in (shaped(offer()), shaped(offer(quoted=None))):
        row = dict(zip(csv_header(), csv_cells(each), strict=True))
        assert row["provider"] == "oci"
        assert row["flags"] == "inferred:name price-per-gpu"
        assert row["quoted_price_micros"] == (2_950_000 if each.quoted else None)


def test_every_card_and_accelerator_has_a_shape() -> None:
    from teraflock.catalog.cards import all_accelerators, all_cards

    shapes = [*map(shape_card, all_cards()), *map(shape_accelerator, all_accelerators())]
    assert len({shape.gpu for shape in shapes}) == len(shapes)
    assert msgspec.json.decode(msgspec.json.encode(shapes), type=list[GpuShape]) == shapes
