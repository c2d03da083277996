"""Random offers and queries with few distinct values, for ties, unknown figures and several currencies.

They are generated from a seed and not value by value, which is a hundred times faster.
"""

from datetime import date
from random import Random
from typing import TypeVar

from teraflock.base.exchange import Rate, Rates
from teraflock.base.money import Price
from teraflock.catalog.places import place_filter
from teraflock.offer.model import MODES, SORTS, WITH_GPU, GpuPart, Kind, Offer, PriceLimit, PriceStatus, Query
from teraflock.offer.rules import FIGURE_SORTS

T = TypeVar("T")

ON = date(2026, 11, 15)
RATES = Rates(
    [
        Rate(date(2024, 1, 1), "CNY", 7_189_000, "test"),
        Rate(date(2019, 1, 1), "CNY", 6_910_000, "test"),
        Rate(date(2020, 1, 1), "EUR", 500_000, "test"),
    ]
)
GPUS = ("A100-SXM4-40", "A100-SXM4-80", "V100-SXM2", "M40-24")
REGIONS = ("", "us-east-1", "US|Germany|UK", "Île-de-France", "50%_off", "北京")
DAYS = ("", "2019", "2019-01", "2019-07-15", "2022-07", "2026-08-22")
PROVIDERS = ("aws", "gcp", "tencent")


def random_offers(random: Random, count: int) -> list[Offer]:
    return [_offer(random, number) for number in range(count)]


def _offer(random: Random, number: int) -> Offer:
    one_of = random.choice
    standing: PriceStatus = one_of(("priced", "priced", "priced", "unknown", "refused"))
    kind: Kind = one_of(("gpu", "gpu", "gpu", "other", "unstated", "none"))
    currency = one_of(("USD", "CNY", "EUR"))
    price = one_of((0, 1, 500_000, 1_000_000, 7_189_000, 2_000_000_001, random.randrange(10**13)))
    gpu = one_of(GPUS) if kind == "gpu" else ("TPU-v4" if kind == "other" else "")
    return Offer(
        id=number * 7919 - 50_000,
        source=one_of(("shipped", "other")),
        cited=f"row {number}",
        provider=one_of(PROVIDERS),
        region=one_of(REGIONS),
        zone=one_of(("", "Zone-A", "zone-b")),
        instance_type=one_of(("", "small", "large")),
        kind=kind,
        gpu=gpu,
        gpu_name=gpu.lower(),
        gpu_count=one_of((None, 0, 1, 1, 2, 4, 8)),
        gpu_share=one_of((1.0, 0.25, 1 / 7)),
        gpu_memory_bytes=one_of((None, 16 << 30, 24 << 30, 80 << 30)),
        gpu_tflops=one_of((None, 7.0, 15.7, 19.5)),
        vcpus=one_of((None, 0.5, 1.0, 8.0, 96.0)),
        ram_bytes=one_of((None, 0, 64 << 30, 1 << 40)),
        mode=one_of((None, *MODES)),
        standing=standing,
        quoted=Price(price, currency, "month") if standing != "unknown" else None,
        currency=currency,
        price_micros_per_month=price if standing == "priced" else None,
        since=one_of(DAYS),
        as_of=one_of(DAYS),
        outdated=random.random() < 0.2,
        flags=one_of(((), ("suspect:ram",), ("inferred:name", "suspect:ram"), ("slice",))),
    )


def random_query(random: Random) -> Query:
    """Return a query with about three filters, so that some offers match."""

    def sometimes(default: T, *values: T) -> T:
        return random.choice(values) if random.random() < 0.25 else default

    limit = PriceLimit(
        random.choice((0, 1, 1_000_000, 7_189_000, random.randrange(10**10))),
        random.choice(("USD", "CNY", "EUR")),
        random.choice(("hour", "month")),
    )
    sort = random.choice(SORTS)
    any_gpu = GPUS if sort in FIGURE_SORTS else ()
    return Query(
        kinds=sometimes(WITH_GPU, ("none",), ("gpu",)),
        gpus=sometimes(any_gpu, ("A100-SXM4-40", "A100-SXM4-80"), ("V100-SXM2",), ("TPU-v4",)),
        providers=sometimes((), ("aws",), ("aws", "tencent")),
        places=place_filter(
            sometimes((), ("US",), ("EU", "germany"), ("île",), ("%_",), ("zone-A", "京"), ("nowhere",)),
            sometimes((), ("DE",), ("gb", "US")),
            sometimes((), ("UK",), ("europe", "us-east-1")),
        ),
        newer_than=sometimes("", "2019-07-15", "2020-01-01", "2026-11-01"),
        slices=random.random() < 0.5,
        parts=sometimes((), (GpuPart(0.25, 16 << 30),), (GpuPart(1 / 7, 24 << 30), GpuPart(0.5, 80 << 30))),
        outdated=random.random() < 0.5,
        modes=sometimes((), ("spot",), ("on-demand", "monthly", "free")),
        sources=sometimes((), ("shipped",)),
        count_min=sometimes(None, 0, 1, 4),
        count_max=sometimes(None, 0, 1, 8),
        memory_bytes_min=sometimes(None, 16 << 30, 24 << 30),
        memory_total_bytes_min=sometimes(None, 48 << 30, 81 << 30),
        vcpus_min=sometimes(None, 0.5, 8.0),
        ram_bytes_min=sometimes(None, 64 << 30),
        price_max=sometimes(None, limit),
        sort=sort,
        refused=random.random() < 0.5,
    )
