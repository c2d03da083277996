"""Instance types that their provider has retired. Price catalogs go on listing some of them.

A table of facts with their source, read on first use. A type that is not in it may be retired too.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache

import msgspec

from teraflock.catalog.cards import table
from teraflock.catalog.names import RESOLUTIONS_MAX


class RetiredType(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    type: str
    """`*` stands for any characters."""
    day: str
    """The day on which its last machines stopped."""
    source: str


@lru_cache(maxsize=RESOLUTIONS_MAX)
def retired_on(provider: str, instance_type: str) -> str:
    """Return the day on which the provider retired the type. Empty if it is not known to be retired."""
    rows = _rows().get(provider, ())
    return next((row.day for pattern, row in rows if pattern.fullmatch(instance_type)), "")


@cache
def _rows() -> Mapping[str, list[tuple[re.Pattern[str], RetiredType]]]:
    found: dict[str, list[tuple[re.Pattern[str], RetiredType]]] = {}
    for row in table("retired.csv", RetiredType):
        pattern = re.compile(re.escape(row.type).replace(r"\*", ".*"), re.IGNORECASE)
        found.setdefault(row.provider, []).append((pattern, row))
    return found
