"""Turn a row of a catalog into an offer: find the card, normalise the price, check for faults.

Importers know the layout of a file and produce a `Row`. This module applies the same checks to every row, from any
layout. A row that cannot be an offer is returned as `Rejected`, with a reason.
"""

import hashlib
from datetime import date
from functools import cache
from typing import Final

import msgspec

from teraflock.base.exchange import Rates
from teraflock.base.money import Period, Price
from teraflock.base.quantities import GIB, MIB
from teraflock.catalog.names import MEMORY_TOLERANCE, resolve
from teraflock.catalog.types import gpu_of_type
from teraflock.offer.model import Basis, Kind, Mode, Offer, PriceStatus
from teraflock.offer.rules import implausible_price, in_currency

GPU_COUNT_MAX: Final = 100_000  # a TPU pod slice has some thousand chips; a larger number is a misread column
RAM_GIB_MAX: Final = 1_000_000  # the largest rented machines have about 32,000
TERM_MONTHS_MAX: Final = 120  # clouds sell terms of up to five years
PRICE_MICROS_PER_MONTH_MAX: Final = 10**17
"""100 billion per month, in any currency. A larger price is a misread column. A 64-bit column can store it."""


class Row(msgspec.Struct, kw_only=True, gc=False):
    """One priced row of a catalog, in Teraflock's fields. Values that the file lacks are `None` or empty."""

    where: str
    """File and line, for the report."""
    provider: str
    region: str = ""
    zone: str = ""
    instance_type: str = ""
    gpu_name: str = ""
    gpu_count: float | None = None
    gpu_memory_mib: float | None = None
    """Memory of one GPU, if the file has it."""
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
    """Why the importer considers the price implausible, such as spot above on-demand."""


class Rejected(msgspec.Struct, frozen=True, gc=False):
    where: str
    reason: str
    """The same text for the same fault, so that reasons can be counted."""


class _Hardware(msgspec.Struct, frozen=True):
    kind: Kind
    gpu: str = ""
    count: int | None = None
    share: float = 1.0
    memory_bytes: int | None = None
    tflops: float | None = None
    flags: tuple[str, ...] = ()


def offer_from(row: Row, *, source: str, rates: Rates, on: date) -> Offer | Rejected:
    typed = gpu_of_type(row.provider, row.instance_type, row.gpu_name, row.gpu_memory_mib)
    hardware = _hardware(typed.name, typed.count or row.gpu_count, typed.memory_mib, typed.share)
    if isinstance(hardware, str):
        return Rejected(row.where, hardware)
    price = row.price_micros
    if price is not None and price < 0:
        return Rejected(row.where, "the price is negative")
    if not 0 <= (row.ram_gib or 0) <= RAM_GIB_MAX or (row.vcpus or 0) < 0:
        return Rejected(row.where, "RAM or vCPUs are out of range")
    if row.as_of > on.isoformat():  # it would outdate every later price
        return Rejected(row.where, "the date of the price is in the future")
    if row.term_months is not None and not 0 < row.term_months <= TERM_MONTHS_MAX:
        return Rejected(row.where, "the term is not a number of months")
    if not rates.knows(row.currency):
        return Rejected(row.where, f"no exchange rate for {row.currency or 'an unnamed currency'}")
    if hardware.kind == "gpu" and hardware.count is None and price and "from-price" not in row.flags:
        return Rejected(row.where, "a GPU has a price but no count")
    flags = row.flags + hardware.flags if hardware.flags else row.flags
    if typed.count and typed.count != row.gpu_count:
        flags += ("corrected:count",)
    standing: PriceStatus = "priced"
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
            return Rejected(row.where, "the price is out of range")
        if fault := row.fault or _implausible(row, hardware, monthly, rates, on):
            standing, monthly = "refused", None
            flags += ("price-refused",)
            note = f"{fault}. {note}".removesuffix(". ")
    ram_bytes = None if row.ram_gib is None else round(row.ram_gib * GIB)
    return Offer(  # by position, in the order of the fields, which is faster
        source, row.provider, hardware.kind, standing, 0, row.cited, row.region, row.zone, row.instance_type,
        hardware.gpu, row.gpu_name, hardware.count, hardware.share, hardware.memory_bytes, hardware.tflops, row.vcpus,
        row.cpu, ram_bytes, row.disk_gb, row.network_gbps, row.mode, row.term_months, quoted, row.basis, row.currency,
        monthly, row.as_of, row.as_of, "", flags, note,
    )  # fmt: skip


def _implausible(row: Row, hardware: _Hardware, monthly: int, rates: Rates, on: date) -> str:
    if row.mode in ("free", "owned") or "free" in row.flags:
        return ""
    if hardware.kind == "none":
        return "" if monthly else "the price is zero"
    usd = in_currency(monthly, row.currency, "USD", rates, on, per="hour")
    return implausible_price(usd, hardware.count or 0, hardware.share, hardware.tflops)


@cache  # a catalog has a few hundred shapes in a hundred thousand rows
def _hardware(name: str, count: float | None, memory_mib: float | None, part: float = 1.0) -> _Hardware | str:
    """Return the accelerators of the row, or the reason why the row is rejected. `part` is the part of one card."""
    if not name and not count:
        return _Hardware(kind="none", count=0)
    if count is not None and not 0 < count <= GPU_COUNT_MAX:
        return f"{count:g} is not a number of GPUs"
    if not name:
        return _Hardware(kind="unstated", count=_whole(count))
    found = resolve(name, memory_mib)
    if found is None:
        return _Hardware(kind="unstated", count=_whole(count))
    flags: tuple[str, ...] = ("inferred:variant",) if found.inferred else ()
    share, memory_bytes = found.share, found.memory_bytes
    if part < 1 and count == 1:
        count, memory_mib = part, None
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
        return f"{count:g} is not a number of GPUs"
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
    """Return a 64-bit id that depends on everything except the price. Equal rows of one source get consecutive ids.

    `taken` has the ids given so far, each with the number of repetitions.
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
