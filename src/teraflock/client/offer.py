"""Offers that were imported on the server."""

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from teraflock.client.noun import Noun

if TYPE_CHECKING:
    from teraflock.offer.words import OfferWords
    from teraflock.wire.offer import HistoryPoint, OfferShape


class Offers(Noun):
    in_project = False

    def list(
        self, words: "OfferWords | None" = None, *, limit: int = 50, refused: bool = False
    ) -> "tuple[OfferShape, ...]":
        """Offers, cheapest first: `client.offers.list(OfferWords(gpu=("V100",)), limit=5)`."""

        from teraflock.wire.offer import (
            OfferShape,
        )  # imported here: a cold `tera ps` must not load the planner

        filters = asdict(words) if words else {}
        return self._get(tuple[OfferShape, ...], "offers", **filters, limit=limit, refused=refused)

    def history(self, words: "OfferWords") -> "tuple[HistoryPoint, ...]":
        """The price of a GPU-hour over time, oldest first. `words.gpu` is required."""

        from teraflock.wire.offer import HistoryPoint

        return self._get(tuple[HistoryPoint, ...], "offers", "history", **asdict(words))
