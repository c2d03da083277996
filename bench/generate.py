"""Generate up to a million realistic offers. The same seed gives the same offers.

2,500 instance types of 20 providers in 200 zones of 40 regions, on-demand and spot, give a million combinations. The
generator picks evenly among them and yields them type by type, as catalogs list them. Only types and places are kept in
memory. All offers have a GPU; real catalogs are mostly machines without one, which queries for GPUs never read.
"""

import csv
from collections.abc import Collection, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from teraflock.base.money import HOURS_PER_MONTH, MICROS, Price
from teraflock.base.quantities import GIB
from teraflock.catalog.cards import card
from teraflock.catalog.model import Card
from teraflock.offer.model import Mode, Offer

SEED: Final = 20_261_115
SOURCE: Final = "generated"
CURRENCIES: Final = "CNY USD"
AS_OF: Final = date(2026, 8, 22)

TYPES: Final = 2_500
UNKNOWN_SHARE: Final = 0.03
REFUSED_SHARE: Final = 0.01
CNY_PER_USD: Final = 7

PROVIDERS: Final = {
    "aws": 18, "azure": 16, "gcp": 16, "oci": 8, "nebius": 4, "runpod": 5, "lambda": 3, "verda": 3, "cloudrift": 2,
    "ibm": 3, "vast": 5, "paperspace": 2, "hyperstack": 2, "scaleway": 2, "ovhcloud": 2, "coreweave": 3,
    "tencent": 3, "alibaba": 3, "baidu": 2, "huawei": 2,
}  # fmt: skip
"""The number of instance types of each, out of a hundred."""
IN_YUAN: Final = frozenset({"tencent", "alibaba", "baidu", "huawei"})

CARDS: Final = {
    8: "H100-SXM5 L4 T4 A100-SXM4-80",
    5: "A10G L40S V100-SXM2 A100-SXM4-40 RTX4090 H200-SXM RTXPRO6000-Server",
    3: "A100-PCIe-80 A10 A6000 H100-PCIe B200 L40 RTX3090 A40 RTX5090 H100-NVL MI300X",
    2: "A4000 A5000 RTX6000Ada RTX4000Ada RTX2000Ada A16 V100-PCIe T4G GH200-96 A100-PCIe-40 P100-PCIe K80",
    1: "M60 M40 P4 P40 V100-SXM2-32 V100-PCIe-32 RTX2080Ti RTX6000 RTX8000 RTX3080 RTX3070 A4500 A30 A2 RTX4080"
    " RTX5000Ada RTX4500Ada GB200 B300 RTX5080 RTX3060 H20 A800-SXM4-80 L20 RTXPRO4500 MI250",
}
"""Sixty cards by weight, most common in catalogs first."""

AREAS: Final = (
    "us-east", "us-west", "us-central", "ca-central", "sa-east", "eu-west", "eu-central", "eu-north", "uk-south",
    "me-central", "af-south", "in-west", "ap-southeast", "ap-northeast", "ap-east", "cn-north", "cn-east", "cn-south",
    "au-east", "kr-central",
)  # fmt: skip
SPELLINGS: Final = (("-", ""), ("", "-"), ("", "-zone-"))
"""Separators before the number of a region and the letter of a zone: `us-east-1a`, `us-east1-a` …"""
ZONES: Final = (2, 3, 4, 5, 5, 6, 7, 8)  # five on average, since regions differ in size

GPUHUNT_PROVIDERS: Final = {
    "aws": "aws", "azure": "azure", "verda": "verda", "gcp": "gcp", "lambda": "lambdalabs", "nebius": "nebius",
    "oci": "oci", "runpod": "runpod", "cloudrift": "cloudrift",
}  # fmt: skip
"""The providers with price files in gpuhunt, and gpuhunt's names for them."""


class InstanceType(NamedTuple):
    provider: str
    name: str
    card: Card
    gpu_count: int
    vcpus: int
    ram_bytes: int
    network_gbps: float | None
    flags: tuple[str, ...]
    micros_per_hour: int
    currency: str


class Place(NamedTuple):
    region: str
    zone: str
    factor: float
    """The price level of the region."""


def offers(count: int, *, seed: int = SEED, providers: Collection[str] = ()) -> Iterator[Offer]:
    """Yield `count` different offers, only of these providers if any are given."""
    random = Random(seed)
    types = instance_types(random)
    places = [_places(before, between) for before, between in SPELLINGS]
    spelling = {name: places[number % len(places)] for number, name in enumerate(PROVIDERS)}
    days = [(AS_OF - timedelta(days=age)).isoformat() for age in range(120)]
    chosen = [each for each in types if not providers or each.provider in providers]
    ways = 2 * len(places[0])
    total = len(chosen) * ways
    if count > total:
        raise ValueError(f"{count:,} offers were requested, but only {total:,} exist")
    for number in range(count):
        # One out of each section of all combinations, so that offers are distinct and in the order of a catalog.
        first, end = number * total // count, (number + 1) * total // count
        combination = first if end - first == 1 else random.randrange(first, end)
        kind, way = divmod(combination, ways)
        yield _offer(
            random, combination, chosen[kind], spelling[chosen[kind].provider][way // 2], way % 2, days
        )


def write_gpuhunt(folder: Path, count: int) -> None:
    """Write priced offers in US dollars in gpuhunt's layout: one file per provider, cheapest first."""
    rows: dict[str, list[tuple[float, Sequence[object]]]] = {name: [] for name in GPUHUNT_PROVIDERS.values()}
    spare = count // 10  # to replace offers without a price, which the layout does not support
    priced = [
        each for each in offers(count + spare, providers=GPUHUNT_PROVIDERS) if each.standing == "priced"
    ]
    for number in range(count):
        offer = priced[number * len(priced) // count]
        rows[GPUHUNT_PROVIDERS[offer.provider]].append(_gpuhunt_row(offer))
    for name, of_provider in rows.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(GPUHUNT_COLUMNS)
            writer.writerows(row for _, row in sorted(of_provider, key=lambda each: each[0]))


GPUHUNT_COLUMNS: Final = (
    "instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot", "disk_size",
    "gpu_vendor", "flags", "cpu_arch", "provider_data",
)  # fmt: skip


def instance_types(random: Random) -> list[InstanceType]:
    ids = [(id, weight) for weight, names in CARDS.items() for id in names.split()]
    cards = random.choices([card(id) for id, _ in ids], [weight for _, weight in ids], k=TYPES)
    hosts = sorted(random.choices(list(PROVIDERS), list(PROVIDERS.values()), k=TYPES))
    return [_type(random, number, *each) for number, each in enumerate(zip(hosts, cards, strict=True))]


def _type(random: Random, number: int, provider: str, card: Card) -> InstanceType:
    count = random.choice((1, 1, 1, 2, 2, 4, 4, 8, 8))
    vcpus = count * random.choice((4, 6, 8, 12, 16, 24))
    each = (
        0.1 + 0.012 * card.memory_gb + 0.015 * (card.fp32_tflops or 30)
    )  # USD per hour, close to the market
    cents = round(100 * count * each * random.uniform(0.6, 1.8)) + 1
    yuan = provider in IN_YUAN
    return InstanceType(
        provider=provider,
        name=f"{card.family.lower()}.{count}x{vcpus}-{number}",
        card=card,
        gpu_count=count,
        vcpus=vcpus,
        ram_bytes=vcpus * random.choice((4, 6, 8)) * GIB,
        network_gbps=random.choice((None, 10.0, 25.0, 100.0)),
        flags=random.choice(((), (), (), ("inferred:variant",))),
        micros_per_hour=cents * MICROS // 100 * (CNY_PER_USD if yuan else 1),
        currency="CNY" if yuan else "USD",
    )


def _places(before: str, between: str) -> list[Place]:
    regions = [(f"{area}{before}{number}", area) for area in AREAS for number in (1, 2)]
    return [
        Place(region, f"{region}{between}{'abcdefgh'[zone]}", 1 + AREAS.index(area) / 50)
        for number, (region, area) in enumerate(regions)
        for zone in range(ZONES[number % len(ZONES)])
    ]


MODES: Final[tuple[Mode, Mode]] = ("on-demand", "spot")


def _offer(
    random: Random, number: int, each: InstanceType, place: Place, spot: int, days: Sequence[str]
) -> Offer:
    luck = random.random()
    # Spot prices differ by zone, on-demand prices by region. Both are in hundredths of a cent, as clouds quote them.
    share = place.factor * random.uniform(0.25, 0.75) if spot else place.factor
    quoted = Price(round(each.micros_per_hour * share / 100) * 100, each.currency, "hour")
    unknown, refused = luck < UNKNOWN_SHARE, luck > 1 - REFUSED_SHARE
    flags, note = each.flags, ""
    if unknown:
        flags = (*flags, "price-unknown")
    elif refused:
        quoted, flags, note = Price(0, each.currency, "hour"), (*flags, "price-refused"), "the price is zero"
    return Offer(
        id=_mixed(number),
        source=SOURCE,
        provider=each.provider,
        region=place.region,
        zone=place.zone,
        instance_type=each.name,
        kind="gpu",
        gpu=each.card.id,
        gpu_name=each.card.family,
        gpu_count=each.gpu_count,
        gpu_memory_bytes=each.card.memory_bytes,
        gpu_tflops=each.card.fp32_tflops,
        vcpus=float(each.vcpus),
        ram_bytes=each.ram_bytes,
        network_gbps=each.network_gbps,
        mode=MODES[spot],
        standing="unknown" if unknown else "refused" if refused else "priced",
        quoted=None if unknown else quoted,
        currency=each.currency,
        price_micros_per_month=None if unknown or refused else quoted.micros * HOURS_PER_MONTH,
        since=days[int(luck * 1_000_003) % len(days)],
        as_of=days[0],
        flags=flags,
        note=note,
    )


def _gpuhunt_row(offer: Offer) -> tuple[float, Sequence[object]]:
    assert offer.quoted is not None
    assert offer.ram_bytes is not None
    made = card(offer.gpu)
    price = offer.quoted.micros / MICROS
    return price, (
        offer.instance_type, offer.zone, price, round(offer.vcpus or 0), offer.ram_bytes / GIB, offer.gpu_count,
        offer.gpu_name, made.memory_gb, offer.mode == "spot", "", made.maker.lower(), "", "x86", "{}",
    )  # fmt: skip


def _mixed(number: int) -> int:
    """Return a 64-bit id that is as random as a real hash. Different numbers give different ids."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _MASK
    return (number ^ number >> 31) - (1 << 63)


_MASK: Final = (1 << 64) - 1
