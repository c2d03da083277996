"""Series of instance types: which card each series of a provider has, and what the provider sells it for.

A table of facts with their evidence, read on first use. `tera providers NAME` and `tera gpus NAME` show it.
"""

from functools import cache

import msgspec

from teraflock.catalog.cards import table
from teraflock.catalog.model import Card
from teraflock.catalog.providers import CONFIRMED, Evidence


class InstanceSeries(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    series: str
    gpus: str
    """The family of its cards."""
    memory_gb: int | None = None
    """The memory of its cards, where only cards of one size are in it. None: any size of the family."""
    purpose: str
    note: str = ""
    evidence: Evidence

    @property
    def text(self) -> str:
        """`P4 for inference (up to 2 cards)`, with a mark if nobody confirmed it."""
        details = "; ".join(
            each for each in (self.note, "" if self.evidence in CONFIRMED else "not confirmed") if each
        )
        return f"{self.gpus} for {self.purpose}" + (f" ({details})" if details else "")


@cache
def all_series() -> tuple[InstanceSeries, ...]:
    return table("series.csv", InstanceSeries)


def series_of_provider(provider: str) -> list[InstanceSeries]:
    return [each for each in all_series() if each.provider == provider]


def series_of_card(card: Card) -> list[InstanceSeries]:
    """The series with cards of this family that can be of this size."""
    return [
        each for each in all_series() if each.gpus == card.family and each.memory_gb in (None, card.memory_gb)
    ]
