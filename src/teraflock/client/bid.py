"""Prices of auctions for idle cards."""

from teraflock.client.noun import PAGE, Noun
from teraflock.wire.bid import BidPricePage


class Bids(Noun):
    def page(self, *, region: str = "", gpu: str = "", after: str = "", limit: int = PAGE) -> BidPricePage:
        """The newest prices, or those before a price."""
        return self._get(
            BidPricePage, "bids", region=region or None, gpu=gpu or None, after=after, limit=limit
        )
