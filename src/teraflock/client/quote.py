"""Quotes: the price of an instance before it is launched."""

from teraflock.client.noun import Noun
from teraflock.wire.quote import QuoteAnswer, QuoteRequest


class Quotes(Noun):
    def get(self, request: QuoteRequest) -> QuoteAnswer:
        return self._act("POST", QuoteAnswer, "quote", body=request)
