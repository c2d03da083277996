"""A user compares offers, offline, from the first command on."""

import csv
import io
from itertools import pairwise
from unicodedata import east_asian_width

import pytest
from tests.story.tera import Tera

STABLE = [
    "provider", "region", "instance_type", "gpu", "gpu_count", "gpu_memory_bytes", "gpu_memory_total_bytes", "vcpus",
    "ram_bytes", "mode", "price_micros", "currency", "per", "price_usd_per_hour", "as_of", "source", "flags",
]  # fmt: skip
GB = 1 << 30


def test_the_cheapest_48_gb_per_month_in_yuan(newcomer: Tera) -> None:
    offers = newcomer.offers(
        *("--gpu", "M40", "--gpu", "P40", "--gpu", "K40", "--memory-total-min", "48"),
        *("--mode", "monthly", "--per", "month", "--currency", "CNY"),
    )
    found = [(o["provider"], o["gpu_count"], o["gpu"], o["price_micros"] / 1e6) for o in offers]
    assert found == [
        ("tencent", 2, "M40-24", 5856),
        ("alibaba", 2, "M40-24", 5954.6),
        ("alibaba", 2, "M40-24", 6792.5),
        ("baidu", 2, "P40", 8094),
        ("alibaba", 2, "M40-24", 8169.1),
        ("tencent", 2, "P40", 9000),
        ("baidu", 4, "K40", 12660),
    ]
    for offer in offers:
        assert (offer["currency"], offer["per"], offer["mode"]) == ("CNY", "month", "monthly")
        assert offer["gpu_memory_total_bytes"] >= 48 * GB
        doubtful = offer["provider"] == "alibaba"
        assert ("suspect:memory" in offer["flags"]) == doubtful
        assert ("12 GB each" in offer["note"]) == doubtful
        assert offer["as_of"] == "2019-01"


def test_v100_prices_per_hour_are_comparable(tera: Tera) -> None:
    offers = tera.offers("--gpu", "V100", "--mode", "on-demand", "--currency", "USD")
    by_shape = {
        (o["provider"], o["instance_type"], o["gpu_count"], o["ram_bytes"] and o["ram_bytes"] // GB): o
        for o in offers
    }
    hourly = {shape: offer["price_usd_per_hour"] for shape, offer in by_shape.items()}
    oracle = {shape[2]: price for shape, price in hourly.items() if shape[0] == "oci"}
    assert oracle == {1: 2.95, 2: 5.9, 4: 11.8, 8: 23.6}
    assert hourly["azure", "NC12s_v3", 2, 224] == 6.12
    assert hourly["ibm", "virtual server", 1, 64] == 2.49
    assert hourly["ibm", "virtual server", 2, 128] == 4.99
    eight = by_shape["oci", "BM.GPU3.8", 8, 768]
    assert eight["price_per_gpu_micros"] == 2_950_000
    assert eight["quoted"] == {"price_micros": 2_950_000, "currency": "USD", "per": "hour", "basis": "gpu"}
    assert {"price-per-gpu", "inferred:price"} <= set(eight["flags"])
    azure = by_shape["azure", "NC12s_v3", 2, 224]
    assert azure["quoted"] == {
        "price_micros": 4_467_600_000, "currency": "USD", "per": "month", "basis": "instance",
    }  # fmt: skip
    priced = [offer["price_micros"] for offer in offers if offer["price_micros"] is not None]
    assert priced == sorted(priced)
    assert [offer["standing"] for offer in offers] == ["priced"] * len(priced) + ["unknown"] * (
        len(offers) - len(priced)
    )


def test_the_fields_of_an_offer_are_stable(tera: Tera) -> None:
    offers = tera.offers("--all")
    assert len(offers) > 100
    for offer in offers:
        assert offer.keys() == offers[0].keys()
        assert [field for field in STABLE if field not in offer] == []
        assert isinstance(offer["flags"], list)
        assert (offer["currency"], offer["per"]) == ("USD", "hour")
        if offer["price_micros"] is not None:
            assert offer["price_micros"] / 1e6 == pytest.approx(offer["price_usd_per_hour"])
        if offer["gpu_count"] and offer["gpu_memory_bytes"]:
            assert offer["gpu_memory_total_bytes"] == offer["gpu_count"] * offer["gpu_memory_bytes"]


def test_csv_equals_json(tera: Tera) -> None:
    question = ("--gpu", "T4", "--gpu", "V100", "--all")
    rows = list(csv.DictReader(io.StringIO(tera.ok("offers", *question, "--csv").out)))
    offers = tera.offers(*question)
    assert [row["id"] for row in rows] == [offer["id"] for offer in offers]
    for row, offer in zip(rows, offers, strict=True):
        assert row["price_micros"] == ("" if offer["price_micros"] is None else str(offer["price_micros"]))
        assert row["flags"].split() == offer["flags"]


def test_the_table_has_currency_period_and_a_footer(tera: Tera) -> None:
    done = tera.ok("offers", "--gpu", "V100", "--mode", "on-demand", "--per", "month")
    head, *lines = done.out.splitlines()
    assert "USD/month" in head
    assert len(lines) == 24
    assert "4,467.60" in done.out
    assert "24 offers" in done.err
    assert "newest from 2022-07" in done.err
    assert "oldest from 2019" in done.err


def test_numbers_are_aligned(tera: Tera) -> None:
    head, *lines = tera.ok("offers", "--gpu", "V100", "--mode", "on-demand").out.splitlines()
    end = head.index("USD/hour") + len("USD/hour")
    figures = [line[:end].split()[-1] for line in lines]
    assert all(len(line.rstrip()) >= end for line in lines)
    assert all(figure == "unknown" or float(figure) > 0 for figure in figures)
    assert {line[end - 4] for line, figure in zip(lines, figures, strict=True) if figure != "unknown"} == {
        "."
    }


@pytest.mark.parametrize(
    "words",
    [("offers", "--gpu", "V100"), ("offers",), ("gpus",), ("providers",), ("gpus", "T4")],
    ids=" ".join,
)
@pytest.mark.parametrize("columns", [60, 80])
def test_tables_fit_the_terminal(tera: Tera, words: tuple[str, ...], columns: int) -> None:
    lines = tera.ok(*words, columns=columns).out.splitlines()
    table = lines[lines.index(next(line for line in lines if line.startswith(("GPU", "PROVIDER")))) :]
    assert len(table) > 3
    too_wide = [line for line in table if sum(1 + (east_asian_width(c) in "WF") for c in line) > columns]
    assert too_wide == []


def test_prices_in_yuan_are_converted_at_a_dated_rate(tera: Tera) -> None:
    done = tera.ok("offers", "--gpu", "M40", "--mode", "monthly")
    assert "Exchange: 1 USD = 7.189 CNY (2024-01-01" in done.err
    (first, *_) = tera.offers("--gpu", "M40", "--mode", "monthly")
    assert first["price_usd_per_hour"] == pytest.approx(5856 / 7.189 / 730, abs=1e-6)
    assert first["quoted"]["price_micros"] == 5_856_000_000


def test_prices_of_a_past_date(tera: Tera) -> None:
    assert {offer["as_of"] for offer in tera.offers("--gpu", "V100", "--as-of", "2020")} <= {
        "2019",
        "2019-01",
        "",
    }
    assert tera.offers("--gpu", "V100", "--as-of", "2023-06-01")[0]["provider"]


def test_limits_and_all(tera: Tera) -> None:
    assert len(tera.offers()) == 50
    done = tera.ok("offers", "--json", "--limit", "3")
    assert len(done.json) == 3
    assert "3 of 135 offers printed; `--all` prints all of them" in done.err, "one price is outdated"
    assert len(tera.offers("--all")) == 136


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--count", "0"), {"gpu": None, "gpu_count": 0}),
        (("--count", "4+", "--provider", "oracle"), {"provider": "oci"}),
        (("--count", "2-4", "--gpu", "p40"), {"gpu": "P40"}),
        (("--vcpu-min", "90", "--provider", "azure"), {"vcpus": 96}),
        (("--ram-min", "700GB", "--provider", "oci"), {"gpu_count": 8}),
        (("--region", "germany"), {"provider": "oci"}),
        (("--mode", "free"), {"price_micros": 0}),
        (
            ("--mode", "spot", "--gpu", "V100", "--price-max", "1"),
            {"provider": "gcp", "price_micros": 800_000},
        ),
        (("--source", "shipped", "--gpu", "H200 "), None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_filters(tera: Tera, words: tuple[str, ...], expected: dict[str, object] | None) -> None:
    offers = tera.offers(*words)
    if expected is None:
        assert offers == []
        return
    assert offers
    for offer in offers:
        assert {name: offer[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("sort", "measure"),
    [
        ("price-per-gpu", lambda offer: offer["gpu_count"]),
        ("price-per-tflops", lambda offer: offer["gpu_fp32_tflops"] * offer["gpu_count"]),
        ("price-per-gb", lambda offer: offer["gpu_memory_total_bytes"]),
    ],
    ids=["gpu", "tflops", "gb"],
)
def test_orders(tera: Tera, sort: str, measure: object) -> None:
    offers = [
        o for o in tera.offers("--sort", sort, "--mode", "on-demand") if o["price_micros"] and o["gpu_count"]
    ]
    measured = [offer["price_usd_per_hour"] / measure(offer) for offer in offers]  # type: ignore[operator]
    assert len(measured) > 20
    assert all(b >= a * 0.99999 for a, b in pairwise(measured))
