"""Prices and the price book."""

from teraflock.client.noun import Noun
from teraflock.wire.price import BookRequest, PeriodsAnswer, PricesAnswer


class Prices(Noun):
    in_project = False

    def get(self) -> PricesAnswer:
        return self._get(PricesAnswer, "prices")

    def set(self, text: str, *, name: str = "prices.yaml") -> PeriodsAnswer:
        return self._act("PUT", PeriodsAnswer, "prices", body=BookRequest(text=text, name=name))
