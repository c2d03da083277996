"""Checks for rows of all layouts: find the card, normalise the price, detect faults."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.offer.catalogs import offered

from teraflock.base.money import MICROS, SECONDS, Period, Price, micros_per
from teraflock.base.quantities import GIB
from teraflock.offer.intake import Rejected, Row, identified
from teraflock.offer.model import FLAGS, Offer

HOURS = 730


def row(**given: Any) -> Row:
    usual: dict[str, Any] = {
        "where": "file.csv, line 2",
        "provider": "aws",
        "gpu_name": "A100",
        "gpu_count": 1,
        "gpu_memory_mib": 40 * 1024,
        "mode": "on-demand",
        "price_micros": 3 * MICROS,
    }
    return Row(**usual | given)


def accepted(**given: Any) -> Offer:
    offer = offered(row(**given))
    assert isinstance(offer, Offer)
    assert set(offer.flags) <= FLAGS.keys()
    return offer


def rejected(**given: Any) -> str:
    offer = offered(row(**given))
    assert isinstance(offer, Rejected)
    assert offer.where == "file.csv, line 2"
    return offer.reason


# --- prices --------------------------------------------------------------------------------------------------------


def test_a_price_is_kept_as_quoted_and_normalised_once() -> None:
    offer = accepted(price_micros=3_059_100, gpu_count=8, gpu_name="V100")
    assert offer.standing == "priced"
    assert offer.quoted == Price(3_059_100, "USD", "hour")
    assert offer.price_micros_per_month == 3_059_100 * HOURS
    assert offer.since == offer.as_of == ""


@pytest.mark.parametrize(
    ("per", "micros", "monthly"),
    [
        ("second", 850, 850 * 3600 * HOURS),
        ("hour", 3_060_000, 2_233_800_000),
        ("month", 2_233_000_000, 2_233_000_000),
    ],
)
def test_every_period_has_an_exact_price_per_month(per: Period, micros: int, monthly: int) -> None:
    assert accepted(per=per, price_micros=micros).price_micros_per_month == monthly


def test_a_price_per_gpu_is_multiplied_by_the_number_of_gpus() -> None:
    offer = accepted(basis="gpu", gpu_count=8, gpu_name="V100", price_micros=2_950_000)
    assert offer.price_micros_per_month == 8 * 2_950_000 * HOURS
    assert offer.quoted == Price(2_950_000, "USD", "hour")
    assert "price-per-gpu" in offer.flags


@given(st.integers(1, 10**9), st.sampled_from(("second", "hour", "month")), st.integers(1, 16))
def test_normalising_a_price_is_reversible(micros: int, per: Period, count: int) -> None:
    offer = accepted(price_micros=micros, per=per, basis="gpu", gpu_count=count)
    assert offer.quoted == Price(micros, "USD", per)
    if offer.standing == "priced":
        monthly = offer.price_micros_per_month
        assert monthly == micros * count * SECONDS["month"] // SECONDS[per]
        assert micros_per(monthly, per) == micros * count


@pytest.mark.parametrize("price", [0, 10_000, 14_999])
def test_a_zero_or_one_cent_price_is_refused_but_the_offer_listed(price: int) -> None:
    offer = accepted(price_micros=price)
    assert (offer.standing, offer.price_micros_per_month) == ("refused", None)
    assert offer.quoted == Price(price, "USD", "hour")
    assert "price-refused" in offer.flags
    assert offer.note.startswith("the price is zero" if price == 0 else "0.01")


def test_one_cent_in_yuan_is_refused_too() -> None:
    assert accepted(price_micros=71_890, currency="CNY").standing == "refused"  # 0.01 USD
    assert accepted(price_micros=20 * 71_890, currency="CNY").standing == "priced"


def test_the_minimum_price_is_per_gpu() -> None:
    assert accepted(price_micros=80_000, gpu_count=8).standing == "refused"
    assert (
        accepted(price_micros=8 * 50_000, gpu_count=8, gpu_name="T4", gpu_memory_mib=None).standing
        == "priced"
    )


def test_a_fast_card_has_a_higher_minimum_price() -> None:
    assert accepted(gpu_name="RTX 5090", gpu_memory_mib=None, price_micros=40_000).standing == "refused"
    assert accepted(gpu_name="GTX 1070", gpu_memory_mib=None, price_micros=40_000).standing == "priced"


def test_the_reason_for_a_refusal_comes_before_the_note() -> None:
    assert accepted(price_micros=0, note="see the web page").note == "the price is zero. see the web page"
    assert accepted(price_micros=0).note == "the price is zero"
    fault = "the spot price is above the on-demand price"
    assert accepted(fault=fault).note == fault


def test_without_a_gpu_only_a_zero_price_is_refused() -> None:
    small = {"gpu_name": "", "gpu_count": None, "gpu_memory_mib": None}
    assert accepted(**small, price_micros=4_200).standing == "priced"
    assert accepted(**small, price_micros=0).standing == "refused"


@pytest.mark.parametrize(
    "free", [{"mode": "free"}, {"flags": ("free",)}, {"mode": "owned"}], ids=["mode", "flag", "owned"]
)
def test_a_free_offer_may_have_a_zero_price(free: dict[str, Any]) -> None:
    offer = accepted(price_micros=0, **free)
    assert (offer.standing, offer.price_micros_per_month) == ("priced", 0)


def test_a_missing_price_is_not_a_fault() -> None:
    offer = accepted(price_micros=None)
    assert (offer.standing, offer.quoted, offer.price_micros_per_month) == ("unknown", None, None)
    assert "price-unknown" in offer.flags


def test_a_negative_price_is_rejected() -> None:
    assert rejected(price_micros=-1) == "the price is negative"


@pytest.mark.parametrize("currency", ["XXX", "usd", ""])
def test_a_currency_without_a_rate_is_rejected(currency: str) -> None:
    assert rejected(currency=currency) == f"no exchange rate for {currency or 'an unnamed currency'}"


@pytest.mark.parametrize(("price", "per"), [(10**30, "hour"), (10**12, "second"), (10**16, "hour")])
def test_a_price_too_large_for_a_column_is_rejected(price: int, per: Period) -> None:
    assert rejected(price_micros=price, per=per) == "the price is out of range"


# --- number of GPUs ------------------------------------------------------------------------------------------------


def test_a_priced_gpu_needs_a_count() -> None:
    assert rejected(gpu_count=None) == "a GPU has a price but no count"
    assert accepted(gpu_count=None, price_micros=None).gpu_count is None


def test_the_lowest_price_of_a_range_needs_no_count() -> None:
    offer = accepted(gpu_count=None, flags=("from-price",))
    assert (offer.standing, offer.gpu_count) == ("priced", None)


@pytest.mark.parametrize("count", [-1, 1.5, 2.25, 100_001, 1e15])
@pytest.mark.parametrize("name", ["A100", ""])
def test_an_impossible_number_of_gpus_is_rejected(count: float, name: str) -> None:
    judged = offered(row(gpu_count=count, gpu_name=name))
    if name or not 0 < count < 100:
        assert isinstance(judged, Rejected)
        assert judged.reason.endswith("is not a number of GPUs")
    else:
        assert isinstance(judged, Offer)  # the GPU is not named
        assert (judged.kind, judged.gpu_count) == ("unstated", None)


@pytest.mark.parametrize("count", [12, None, 8])
def test_a_wrong_number_of_gpus_of_a_known_type_is_corrected(count: int | None) -> None:
    """A public catalog has 12 GPUs in Azure's machine of 8."""
    offer = accepted(
        provider="azure", instance_type="Standard_ND96isr_H100_v5", gpu_name="H100", gpu_count=count,
        gpu_memory_mib=None, price_micros=98_320_000,
    )  # fmt: skip
    assert (offer.gpu, offer.gpu_count) == ("H100-SXM5", 8)
    assert ("corrected:count" in offer.flags) == (count != 8)


def test_zero_gpus_of_a_named_card_are_rejected() -> None:
    assert rejected(gpu_count=0) == "0 is not a number of GPUs"


def test_a_part_of_a_card_is_a_slice() -> None:
    offer = accepted(gpu_name="A10", gpu_count=0.25, gpu_memory_mib=None, price_micros=300_000)
    assert (offer.gpu, offer.gpu_count, offer.gpu_share) == ("A10", 1, 0.25)
    assert offer.gpu_memory_bytes == 6 * GIB
    assert offer.gpu_tflops == pytest.approx(31.2 / 4, rel=0.01)
    assert "slice" in offer.flags


def test_a_part_of_a_slice_counts_once() -> None:
    whole = accepted(gpu_name="A100 MIG 3g.20gb", gpu_memory_mib=None)
    half = accepted(gpu_name="A100 MIG 3g.20gb", gpu_memory_mib=None, gpu_count=0.5)
    assert (whole.gpu, whole.gpu_memory_bytes) == ("A100-SXM4-40", 20 * GIB)
    assert half.gpu_memory_bytes == 10 * GIB
    assert half.gpu_share == pytest.approx(whole.gpu_share / 2)


def test_a_name_may_include_the_number_of_chips() -> None:
    offer = accepted(gpu_name="tpu-v4-8", gpu_count=1, gpu_memory_mib=None)
    assert (offer.kind, offer.gpu, offer.gpu_count) == ("other", "TPU-v4", 4)


# --- cards ---------------------------------------------------------------------------------------------------------


def test_memory_selects_the_variant() -> None:
    assert accepted(gpu_memory_mib=40 * 1024).gpu == "A100-SXM4-40"
    assert accepted(gpu_memory_mib=80 * 1024).gpu == "A100-SXM4-80"


def test_memory_that_contradicts_the_card_is_flagged() -> None:
    offer = accepted(gpu_name="V100-SXM2-32GB", gpu_memory_mib=16 * 1024)
    assert (offer.gpu, offer.gpu_memory_bytes) == ("V100-SXM2-32", 32 * GIB)
    assert "suspect:memory" in offer.flags
    assert "suspect:memory" not in accepted(gpu_name="A10G", gpu_memory_mib=22_888).flags


def test_an_unknown_gpu_is_imported_as_unstated() -> None:
    offer = accepted(gpu_name="Voodoo 9000", gpu_count=2)
    assert (offer.kind, offer.gpu, offer.gpu_name, offer.gpu_count) == ("unstated", "", "Voodoo 9000", 2)
    assert offer.standing == "priced"
    assert offer.gpu_memory_bytes is None


def test_a_count_without_a_name_is_unstated() -> None:
    offer = accepted(gpu_name="", gpu_count=4, gpu_memory_mib=None)
    assert (offer.kind, offer.gpu_count) == ("unstated", 4)


def test_neither_name_nor_count_means_no_gpu() -> None:
    offer = accepted(gpu_name="", gpu_count=None, gpu_memory_mib=None)
    assert (offer.kind, offer.gpu_count) == ("none", 0)


def test_the_most_common_variant_is_assumed_and_flagged() -> None:
    offer = accepted(gpu_memory_mib=None)
    assert offer.gpu == "A100-SXM4-40"
    assert "inferred:variant" in offer.flags


# --- other columns -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("figures", [{"ram_gib": -1.0}, {"ram_gib": 1e14}, {"vcpus": -4.0}])
def test_impossible_figures_are_rejected(figures: dict[str, Any]) -> None:
    assert "RAM or vCPUs" in rejected(**figures)


def test_a_row_with_its_own_date_keeps_it() -> None:
    offer = accepted(as_of="2019-01")
    assert offer.since == offer.as_of == "2019-01"


# --- ids -----------------------------------------------------------------------------------------------------------


def test_an_id_does_not_depend_on_the_price() -> None:
    cheap, expensive = accepted(), accepted(price_micros=9 * MICROS, vcpus=96.0, as_of="2020")
    assert identified(cheap, {}) == identified(expensive, {})
    others = [
        accepted(mode="spot"),
        accepted(region="us"),
        accepted(zone="a"),
        accepted(gpu_count=2),
        accepted(provider="gcp"),
        accepted(instance_type="p4d"),
        accepted(term_months=12),
        accepted(cited="page 2"),
        accepted(gpu_name="A100-40GB"),
    ]
    ids = {identified(offer, {}) for offer in (cheap, *others)}
    assert len(ids) == 1 + len(others)
    assert all(-(2**63) <= id < 2**63 for id in ids)


def test_equal_rows_get_the_same_ids_on_every_import() -> None:
    offer = accepted()

    def ids_of_many() -> list[int]:
        seen: dict[int, int] = {}
        return [
            identified(offer, seen) for _ in range(20_000)
        ]  # as many as a market lists; none may take longer than others

    assert ids_of_many() == ids_of_many()
    assert len(set(ids_of_many())) == 20_000
