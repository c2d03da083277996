"""Credits of a project."""

from datetime import datetime

from teraflock.client.noun import Noun
from teraflock.wire.credit import CreditAnswer, CreditList, CreditRequest


class Credits(Noun):
    def list(self) -> tuple[CreditAnswer, ...]:
        return self._get(CreditList, "credits").items

    def give(self, micros: int, reason: str, *, expires_at: datetime | None = None) -> CreditAnswer:
        request = CreditRequest(micros=micros, reason=reason, expires_at=expires_at)
        return self._create(CreditAnswer, "credits", body=request)
