"""An offer as JSON: in the requested currency and period, together with the quoted price."""

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Literal

import msgspec

from teraflock.base.exchange import Rates
from teraflock.base.filling import filled
from teraflock.base.money import MICROS, Period
from teraflock.catalog.places import places_of
from teraflock.catalog.retired import retired_on
from teraflock.offer.model import Offer
from teraflock.offer.rules import price_in
from teraflock.offer.types import TypeLine

if TYPE_CHECKING:
    from teraflock.offer.service import Point


class QuotedShape(msgspec.Struct, frozen=True):
    """The price as in the source."""

    price_micros: int
    currency: str
    per: str
    basis: str


class OfferShape(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    region: str
    zone: str
    instance_type: str
    gpu: str | None
    gpu_name: str
    gpu_count: int | None
    gpu_share: float
    gpu_memory_bytes: int | None
    gpu_memory_total_bytes: int | None
    gpu_fp32_tflops: float | None
    vcpus: float | int | None
    cpu: str
    ram_bytes: int | None
    disk_gb: float | None
    network_gbps: float | None
    mode: str | None
    term_months: int | None
    standing: str
    price_micros: int | None
    price_per_gpu_micros: int | None
    currency: str
    per: str
    price_usd_per_hour: float | None
    quoted: QuotedShape | None
    since: str
    as_of: str
    outdated: bool = False
    """Whether there is a newer price of the same machine."""
    retired: str = ""
    """The day on which the provider retired this type of machine. Empty if it is not known to be retired."""
    country: str = ""
    """ISO code. Several countries are separated by `|`. Empty if unknown."""
    source: str
    cited: str
    flags: tuple[str, ...]
    note: str
    id: str


def shape_offer(offer: Offer, *, currency: str, per: Period, rates: Rates, on: date) -> OfferShape:
    usd = price_in(offer, "USD", rates, on)
    quoted = offer.quoted
    vcpus = offer.vcpus
    return OfferShape(  # not `filled`, which takes half as long again: `--json` may print 100,000 offers
        provider=offer.provider,
        region=offer.region,
        zone=offer.zone,
        instance_type=offer.instance_type,
        gpu=offer.gpu or None,
        gpu_name=offer.gpu_name,
        gpu_count=offer.gpu_count,
        gpu_share=offer.gpu_share,
        gpu_memory_bytes=offer.gpu_memory_bytes,
        gpu_memory_total_bytes=offer.gpu_memory_total_bytes,
        gpu_fp32_tflops=offer.gpu_tflops,
        vcpus=int(vcpus) if vcpus is not None and vcpus == int(vcpus) else vcpus,
        cpu=offer.cpu,
        ram_bytes=offer.ram_bytes,
        disk_gb=offer.disk_gb,
        network_gbps=offer.network_gbps,
        mode=offer.mode,
        term_months=offer.term_months,
        standing=offer.standing,
        price_micros=price_in(offer, currency, rates, on, per=per),
        price_per_gpu_micros=price_in(offer, currency, rates, on, per=per, each=True),
        currency=currency,
        per=per,
        price_usd_per_hour=None if usd is None else usd / MICROS,
        quoted=QuotedShape(quoted.micros, quoted.currency, quoted.per, offer.basis) if quoted else None,
        since=offer.since,
        as_of=offer.as_of,
        outdated=offer.outdated,
        retired=retired_on(offer.provider, offer.instance_type),
        country="|".join(
            place.country for place in places_of(offer.provider, offer.region, offer.zone)
        ).strip("|"),
        source=offer.source,
        cited=offer.cited,
        flags=offer.flags,
        note=offer.note,
        id=f"{offer.id & 0xFFFFFFFFFFFFFFFF:016x}",
    )


class ModePriceShape(msgspec.Struct, frozen=True, kw_only=True):
    """The cheapest offer of an instance type in one purchase mode."""

    price_micros: int | None
    price_per_gpu_micros: int | None
    region: str
    zone: str
    standing: str
    as_of: str
    flags: tuple[str, ...]


class InstanceTypeShape(msgspec.Struct, frozen=True, kw_only=True):
    """An instance type with its purchase modes side by side, for `tera offers --by type --json`."""

    provider: str
    instance_type: str
    gpu: str | None
    gpu_count: int | None
    gpu_share: float
    gpu_memory_bytes: int | None
    vcpus: float | int | None
    ram_bytes: int | None
    currency: str
    per: str
    modes: dict[str, ModePriceShape]
    offers: int
    regions: int


def shape_type(line: TypeLine, *, currency: str, per: Period, rates: Rates, on: date) -> InstanceTypeShape:
    kind = line.type
    return filled(
        InstanceTypeShape,
        kind,
        instance_type=kind.name,
        gpu=kind.gpu or None,
        vcpus=int(kind.vcpus) if kind.vcpus is not None and kind.vcpus == int(kind.vcpus) else kind.vcpus,
        currency=currency,
        per=per,
        modes={
            mode: filled(
                ModePriceShape,
                offer,
                price_micros=price_in(offer, currency, rates, on, per=per),
                price_per_gpu_micros=price_in(offer, currency, rates, on, per=per, each=True),
            )
            for mode, offer in line.best.items()
        },
        offers=line.offers,
        regions=line.regions,
    )


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The prices that were first seen on one day."""

    currency: str
    per: Literal["gpu-hour"]
    day: str
    lowest_micros: int
    median_micros: int
    highest_micros: int
    offers: int


def history_points(points: "Iterable[Point]", currency: str) -> list[HistoryPoint]:
    return [filled(HistoryPoint, each, currency=currency, per="gpu-hour") for each in points]


_QUOTED = QuotedShape.__struct_fields__
_PLAIN = tuple(name for name in OfferShape.__struct_fields__ if name != "quoted")


def csv_header() -> tuple[str, ...]:
    return (*_PLAIN, *(f"quoted_{name}" for name in _QUOTED))


def csv_cells(shape: OfferShape) -> tuple[object, ...]:
    plain = (getattr(shape, name) for name in _PLAIN)
    quoted = (getattr(shape.quoted, name) if shape.quoted else None for name in _QUOTED)
    return (*(" ".join(cell) if isinstance(cell, tuple) else cell for cell in plain), *quoted)
