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
from teraflock.base.money import Period, Price
from teraflock.base.quantities import GIB, MIB
from teraflock.catalog.names import resolve
from teraflock.offer.model import Basis, Kind, Mode, Offer, Standing
from teraflock.offer.rules import absurd_price, in_currency

GPU_COUNT_MAX: Final = 100_000  # a TPU pod slice has some thousand chips; beyond this a column was misread
RAM_GIB_MAX: Final = 1_000_000  # the largest machines let have some 32,000
PRICE_MICROS_PER_MONTH_MAX: Final = 10**17
"""A hundred thousand million a month, in any currency: beyond it, a column was misread. A 64-bit column holds more."""


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
    if not 0 <= (row.ram_gib or 0) <= RAM_GIB_MAX or (row.vcpus or 0) < 0:
        return Rejected(row.where, "no machine has so much or so little RAM or vCPUs")
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
        if monthly > PRICE_MICROS_PER_MONTH_MAX:
            return Rejected(row.where, "the price is beyond any price")
        if fault := row.fault or _absurd(row, hardware, monthly, rates, on):
            standing, monthly = "refused", None
            flags += ("price-refused",)
            note = f"{fault}. {note}".removesuffix(". ")
    day = row.as_of or as_of
    ram_bytes = None if row.ram_gib is None else round(row.ram_gib * GIB)
    return Offer(  # by position, in the order of the fields
        source, row.provider, hardware.kind, standing, 0, row.cited, row.region, row.zone, row.instance_type,
        hardware.gpu, row.gpu_name, hardware.count, hardware.share, hardware.memory_bytes, hardware.tflops, row.vcpus,
        row.cpu, ram_bytes, row.disk_gb, row.network_gbps, row.mode, row.term_months, quoted, row.basis, row.currency,
        monthly, day, day, "", flags, note,
    )  # fmt: skip


def _absurd(row: Row, hardware: _Hardware, monthly: int, rates: Rates, on: date) -> str:
    if row.mode in ("free", "owned") or "free" in row.flags:
        return ""
    if hardware.kind == "none":
        return "" if monthly else "the price is zero"
    usd = in_currency(monthly, row.currency, "USD", rates, on, per="hour")
    return absurd_price(usd, hardware.count or 0, hardware.share, hardware.tflops)


MEMORY_TOLERANCE: Final = 0.08  # catalogs write 22,888 MiB for 24 GB; no two variants of a card lie so near


@cache  # a catalog names a few hundred shapes in a hundred thousand rows
def _hardware(name: str, count: float | None, memory_mib: float | None) -> _Hardware | str:
    """What the row computes with, or why it cannot be told."""
    if not name and not count:
        return _Hardware(kind="none", count=0)
    if count is not None and not 0 < count <= GPU_COUNT_MAX:
        return f"{count:g} is no number of GPUs"
    if not name:
        return _Hardware(kind="unstated", count=_whole(count))
    found = resolve(name, memory_mib)
    if found is None:
        return _Hardware(kind="unstated", count=_whole(count))
    flags: tuple[str, ...] = ("inferred:variant",) if found.inferred else ()
    share, memory_bytes = found.share, found.memory_bytes
    if count is not None and count < 1:
        memory_bytes = None if memory_bytes is None else round(memory_bytes * count)
        share, count = share * count, 1
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


def identified(offer: Offer, taken: dict[int, int]) -> int:
    """A 64-bit id of what the offer is, whatever its price. Equal rows of one source count up.

    `taken` holds the ids given so far, each with how often it was wanted again.
    """
    first = number = _hashed(
        f"{offer.source}\x1f{offer.provider}\x1f{offer.region}\x1f{offer.zone}\x1f{offer.instance_type}\x1f{offer.gpu_name}"
        f"\x1f{offer.gpu_count}\x1f{offer.gpu_share}\x1f{offer.mode}\x1f{offer.term_months}\x1f{offer.cited}"
    )
    while number in taken:
        taken[first] += 1
        number = _hashed(f"{first} again {taken[first]}")
    taken[number] = 0
    return number


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)
