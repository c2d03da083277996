"""Quantities: parsing, limits and formatting, mostly of bytes.

GPU vendors and clouds write GB for 2**30 bytes of memory. Teraflock does the same.
"""

import re
from typing import Annotated, Final

from msgspec import Meta

from teraflock.base.errors import BadInput

GIB: Final = 1 << 30
MIB: Final = 1 << 20

Word = Annotated[str, Meta(max_length=200)]
Words = Annotated[tuple[Word, ...], Meta(max_length=20)]
Whole = Annotated[int, Meta(ge=-(1 << 53), le=1 << 53)]
"""Upper limit for numbers in a request: above any useful value, and small enough to compute with."""

_UNITS: Final = ((1 << 40, "TB"), (GIB, "GB"), (MIB, "MB"), (1 << 10, "KB"))
_BYTES_PER: Final = {"m": MIB, "g": GIB, "t": 1 << 40}
_QUANTITY: Final = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*(?:([mgt])(?:i?b)?)?\s*", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*", re.ASCII)


def parse_memory_bytes(text: str) -> int:
    """`"48"`, `"48GB"`, `"48 GiB"` → bytes. A number without a unit is in GB of 2**30 bytes."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise BadInput(
            f"`{text}` is not an amount of memory", hint="Write it as `48`, `48GB`, `48GiB` or `512MB`"
        )
    return round(float(match[1]) * _BYTES_PER[(match[2] or "g").lower()])


def check_between(option: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise BadInput(f"`--{option}` must be from {low} to {high}, not {value}")


def parse_number(text: str, what: str) -> float:
    """`"8"`, `"0.5"` → a number of zero or more. `what` names its unit in the error."""
    match = _NUMBER.fullmatch(text)
    if not match:
        raise BadInput(f"`{text}` is not a number of {what}", hint="Write it as `8` or `0.5`")
    return float(match[1])


def bytes_text(size_bytes: int) -> str:
    """Format a size in a fitting unit: `512 B`, `64 KB`, `256 MB`, `1.5 GB`, `3 TB`. Units are powers of 1024."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    unit_bytes, unit = next(each for each in _UNITS if size_bytes >= each[0])
    count = size_bytes / unit_bytes
    text = f"{count:.0f}" if count == int(count) or count >= 100 else f"{count:.1f}".removesuffix(".0")
    return f"{text} {unit}"


def count_text(count: int, noun: str) -> str:
    """`1 instance`, `2 instances`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def significant_text(value: float, digits: int = 4) -> str:
    """Format a number with so many significant digits, at least two decimals, and never an exponent."""
    from math import floor, log10

    decimals = digits - 1 - floor(log10(abs(value))) if value else 2
    return f"{value:,.{max(2, decimals)}f}"


def memory_text(size_bytes: int) -> str:
    """`51539607552` → `"48 GB"`; sizes below one GB as `"256 MB"`."""
    gigabytes = size_bytes / GIB
    if 0 < size_bytes < GIB:
        return f"{max(1, round(size_bytes / MIB))} MB"
    return (
        f"{gigabytes:,.0f} GB" if gigabytes == int(gigabytes) or gigabytes >= 100 else f"{gigabytes:.1f} GB"
    )
