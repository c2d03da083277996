"""From a row of some catalog to an offer: the card is found, the price normalised, and faults are caught.

Importers know how a file is laid out and say what a row means (`Row`); here is what every row must pass,
whoever wrote it. A row that cannot be an offer at all comes back as `Rejected`, with the reason.
"""

import hashlib
from datetime import date
from functools import cache
from typing import Final

import msgspec

from teraflock.base.exchange import Rates
from teraflock.base.money import Period, Price, micros_per
from teraflock.base.quantities import GIB, MIB
from teraflock.catalog.names import resolve
from teraflock.offer.model import Basis, Kind, Mode, Offer, Standing
from teraflock.offer.rules import absurd_price, in_currency

GPU_COUNT_MAX: Final = 100_000  # a TPU pod slice has some thousand chips; beyond this a column was misread


class Row(msgspec.Struct, kw_only=True, gc=False):
    """One priced line of a catalog, in our words. What the file does not say is `None` or empty."""

    where: str
    """File and line, for the report."""
    provider: str
    region: str = ""
    zone: str = ""
    instance_type: str = ""
    gpu_name: str = ""
    gpu_count: float | None = None
    gpu_memory_mib: float | None = None
    """Of one GPU, if the file tells."""
    vcpus: float | None = None
    cpu: str = ""
    ram_gib: float | None = None
    disk_gb: float | None = None
    network_gbps: float | None = None
    mode: Mode | None = None
    term_months: int | None = None
    price_micros: int | None = None
    currency: str = "USD"
    per: Period = "hour"
    basis: Basis = "instance"
    as_of: str = ""
    cited: str = ""
    flags: tuple[str, ...] = ()
    note: str = ""
    fault: str = ""
    """Why the importer found the price absurd, such as spot above on-demand."""


class Rejected(msgspec.Struct, frozen=True, gc=False):
    where: str
    reason: str
    """The same words for the same fault, so that reasons can be counted."""


class _Hardware(msgspec.Struct, frozen=True):
    kind: Kind
    gpu: str = ""
    count: int | None = None
    share: float = 1.0
    memory_bytes: int | None = None
    tflops: float | None = None
    flags: tuple[str, ...] = ()


def offer_from(row: Row, *, source: str, as_of: str, rates: Rates, on: date) -> Offer | Rejected:
    hardware = _hardware(row.gpu_name, row.gpu_count, row.gpu_memory_mib)
    if isinstance(hardware, str):
        return Rejected(row.where, hardware)
    price = row.price_micros
    if price is not None and price < 0:
        return Rejected(row.where, "the price is negative")
    if not rates.knows(row.currency):
        return Rejected(row.where, f"no exchange rate is known for {row.currency or 'an unnamed currency'}")
    if hardware.kind == "gpu" and hardware.count is None and price and "from-price" not in row.flags:
        return Rejected(row.where, "a GPU is priced without saying how many")
    flags = row.flags + hardware.flags if hardware.flags else row.flags
    standing: Standing = "priced"
    quoted = monthly = None
    note = row.note
    if price is None:
        standing = "unknown"
        flags += ("price-unknown",)
    else:
        quoted = Price(price, row.currency, row.per)
        monthly = quoted.micros_per_month
        if row.basis == "gpu":
            monthly *= hardware.count or 1
            flags += ("price-per-gpu",)
        if fault := row.fault or _absurd(row, hardware, monthly, rates, on):
            standing, monthly = "refused", None
            flags += ("price-refused",)
            note = f"{fault}. {note}".removesuffix(". ")
    day = row.as_of or as_of
    return Offer(
        source=source,
        cited=row.cited,
        provider=row.provider,
        region=row.region,
        zone=row.zone,
        instance_type=row.instance_type,
        kind=hardware.kind,
        gpu=hardware.gpu,
        gpu_name=row.gpu_name,
        gpu_count=hardware.count,
        gpu_share=hardware.share,
        gpu_memory_bytes=hardware.memory_bytes,
        gpu_tflops=hardware.tflops,
        vcpus=row.vcpus,
        cpu=row.cpu,
        ram_bytes=None if row.ram_gib is None else round(row.ram_gib * GIB),
        disk_gb=row.disk_gb,
        network_gbps=row.network_gbps,
        mode=row.mode,
        term_months=row.term_months,
        standing=standing,
        quoted=quoted,
        basis=row.basis,
        currency=row.currency,
        price_micros_per_month=monthly,
        since=day,
        as_of=day,
        flags=flags,
        note=note,
    )


def _absurd(row: Row, hardware: _Hardware, monthly: int, rates: Rates, on: date) -> str:
    if row.mode in ("free", "owned") or "free" in row.flags:
        return ""
    if hardware.kind == "none":
        return "" if monthly else "the price is zero"
    usd = micros_per(in_currency(monthly, row.currency, "USD", rates, on), "hour")
    return absurd_price(usd, hardware.count or 0, hardware.share, hardware.tflops)


MEMORY_TOLERANCE: Final = 0.08  # catalogs write 22,888 MiB for 24 GB; no two variants of a card lie so near


@cache  # a catalog names a few hundred shapes in a hundred thousand rows
def _hardware(name: str, count: float | None, memory_mib: float | None) -> _Hardware | str:
    """What the row computes with, or why it cannot be told."""
    if not name:
        return (
            _Hardware(kind="none", count=0) if not count else _Hardware(kind="unstated", count=_whole(count))
        )
    if count is not None and not 0 < count <= GPU_COUNT_MAX:
        return f"{count:g} is no number of GPUs"
    found = resolve(name, memory_mib)
    if found is None:
        return _Hardware(kind="unstated", count=_whole(count))
    flags: tuple[str, ...] = ("inferred:variant",) if found.inferred else ()
    share, memory_bytes = found.share, found.memory_bytes
    if count is not None and count < 1:
        share, count = share * count, 1
        memory_bytes = None if memory_bytes is None else round(memory_bytes * share)
    elif (
        memory_mib and memory_bytes and abs(memory_mib * MIB - memory_bytes) > MEMORY_TOLERANCE * memory_bytes
    ):
        flags += ("suspect:memory",)
    if share < 1:
        flags += ("slice",)
    if count is not None and count != int(count):
        return f"{count:g} is no number of GPUs"
    whole = None if count is None else int(count) * found.chips
    if found.card is None:
        other = found.accelerator
        return _Hardware("other", other.id if other else "", whole, share, memory_bytes, None, flags)
    tflops = found.card.fp32_tflops
    return _Hardware(
        "gpu", found.card.id, whole, share, memory_bytes, None if tflops is None else tflops * share, flags
    )


def _whole(count: float | None) -> int | None:
    return int(count) if count is not None and count == int(count) else None


def identified(offer: Offer, taken: set[int]) -> int:
    """A 64-bit id of what the offer is, whatever its price. Equal rows of one source count up."""
    words = (
        offer.source, offer.provider, offer.region, offer.zone, offer.instance_type, offer.gpu_name,
        str(offer.gpu_count), str(offer.gpu_share), str(offer.mode), str(offer.term_months), offer.cited,
    )  # fmt: skip
    digest = hashlib.blake2b("\x1f".join(words).encode(), digest_size=8)
    while (number := int.from_bytes(digest.digest(), "big", signed=True)) in taken:
        digest.update(b"again")
    taken.add(number)
    return number
