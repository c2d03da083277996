"""Random shapes and wishes, with few distinct values, so that they often collide."""

from datetime import date
from random import Random
from typing import TypeVar

from teraflock.base.exchange import Rate, Rates
from teraflock.offer.model import MODES, GpuPart, PriceStatus, Shape
from teraflock.plan.model import SORTS, Hours, Misfit, Wish

T = TypeVar("T")
ON = date(2026, 11, 15)
RATES = Rates(
    [Rate(date(2024, 1, 1), "CNY", 7_189_000, "test"), Rate(date(2020, 1, 1), "EUR", 500_000, "test")]
)


def random_shapes(random: Random, count: int) -> list[Shape]:
    return [_shape(random, number) for number in range(count)]


def _shape(random: Random, number: int) -> Shape:
    one_of = random.choice
    standing: PriceStatus = one_of(("priced", "priced", "priced", "priced", "unknown", "refused"))
    return Shape(
        provider=one_of(("aws", "paperspace", "runpod", "lambda", "do", "vast", "nobody", "own")),
        instance_type=f"type-{number}",
        kind=one_of(("gpu", "gpu", "gpu", "gpu", "unstated", "none", "other")),
        gpu=one_of(("V100-SXM2", "A100-SXM4-80", "K80")),
        gpu_name="",
        gpu_count=one_of((None, 1, 1, 2, 4, 8)),
        gpu_share=one_of((1.0, 1.0, 1.0, 1.0, 0.25)),
        gpu_memory_bytes=one_of((None, 12 << 30, 16 << 30, 80 << 30)),
        vcpus=None,
        ram_bytes=None,
        mode=one_of((None, *MODES)),
        term_months=one_of((None, 12, 36)),
        standing=standing,
        currency=one_of(("USD", "CNY", "EUR")),
        doubtful=random.random() < 0.1,
        price_micros_per_month=random.choice((0, 730_000_000, random.randrange(10**11)))
        if standing == "priced"
        else None,
        offers=random.randrange(1, 50),
        as_of=one_of(("", "2019", "2026-08-22")),
        outdated=random.random() < 0.1,
    )


def random_wish(random: Random) -> Wish:
    def sometimes(default: T, *values: T) -> T:
        return random.choice(values) if random.random() < 0.3 else default

    slices = sometimes(False, True)
    return Wish(
        use=random.choice(("job", "hours", "monthly")),
        hours=random.choice((0.01, 5.0, 100.0, 729.9, 2000.0)),
        gpus_min=sometimes(1, 2),
        gpus_max=sometimes(None, 1, 4),
        instances_min=(instances_min := sometimes(1, 2)),
        instances_max=sometimes(instances_min, instances_min + 2),
        memory_total_bytes_min=sometimes(None, 48 << 30),
        memory_bytes_min=sometimes(None, 16 << 30),
        modes=sometimes((), ("on-demand",), ("spot", "monthly")),
        providers=sometimes((), ("aws", "own")),
        cards=sometimes((), ("V100-SXM2",), ("A100-SXM4-80", "K80")),
        deadline_hours=sometimes(None, 10.0, 500.0),
        budget_micros=sometimes(None, 0, 100_000_000),
        currency=random.choice(("USD", "CNY")),
        disk_gb=sometimes(0.0, 50.0),
        disk_prices=sometimes((), (("vast", 150_000),), (("aws", 0), ("", 90_000))),
        egress_gb=sometimes(0.0, 20.0),
        egress_micros_per_gb=sometimes(None, 90_000),
        address=sometimes(False, True),
        newer_than=sometimes("", "2020-01-01"),
        slices=slices,
        parts=sometimes((), (GpuPart(0.25, 16 << 30),)) if slices else (),
        sort=random.choice(SORTS),
    )


def estimate(shape: Shape, instances: int) -> Hours | Misfit:
    """A fake estimator: more and larger cards are faster, several machines lose a fifth, and a K80 does not fit."""
    if shape.gpu == "K80":
        return Misfit("does_not_fit", "does not fit: 3.1 GB missing")
    hours = 400.0 / (shape.gpu_count or 1) / (3 if shape.gpu.startswith("A100") else 1)
    if instances > 1:
        hours /= 0.8 * instances
    return Hours(hours * 0.9, hours, hours * 1.25)
