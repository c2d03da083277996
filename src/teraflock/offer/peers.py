"""Find prices that are far from those of other providers for the same GPU and purchase mode.

Such a price is usually a misread column or a placeholder. It is flagged when it is imported, and never chosen.
"""

from collections.abc import Iterable, Iterator
from datetime import date
from statistics import median
from typing import Final, NamedTuple

from teraflock.base.exchange import Rates
from teraflock.offer.rules import in_currency
from teraflock.offer.source.store import PriceRange

FAR: Final = 30
"""How many times a price may be above or below the median. In public catalogs, real prices stay within 15 times."""
PEERS_MIN: Final = 3
"""Other providers that must have a price. With fewer, nobody knows which of them is wrong."""


class FarRange(NamedTuple):
    """Prices of one group outside these limits are far from their peers. In micro-units per GPU and month."""

    group: PriceRange
    least: int
    most: int


def far_ranges(ranges: Iterable[PriceRange], source: str, rates: Rates, on: date) -> Iterator[FarRange]:
    """Yield the groups of a source that contain far prices. Compares with the lowest price of each other provider."""
    lowest: dict[tuple[str, str], dict[str, int]] = {}
    groups = [(each, in_currency(each.lowest, each.currency, "USD", rates, on)) for each in ranges]
    for each, usd in groups:
        of_provider = lowest.setdefault((each.gpu, each.mode), {})
        of_provider[each.provider] = min(usd, of_provider.get(each.provider, usd))
    for each, _ in groups:
        if each.source != source:
            continue
        peers = [usd for name, usd in lowest[each.gpu, each.mode].items() if name != each.provider]
        if len(peers) < PEERS_MIN:
            continue
        middle = in_currency(round(median(peers)), "USD", each.currency, rates, on)
        if each.lowest * FAR < middle or each.highest > middle * FAR:
            yield FarRange(each, middle // FAR, middle * FAR)
