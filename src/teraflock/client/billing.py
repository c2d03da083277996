"""How a project pays, and its payments."""

from teraflock.client.noun import Noun
from teraflock.wire.billing import PaymentRequest, ProfileAnswer, ProfileShape


class Billing(Noun):
    def get(self) -> ProfileAnswer:
        return self._get(ProfileAnswer, "billing")

    def set(self, request: ProfileShape) -> ProfileAnswer:
        return self._act("PUT", ProfileAnswer, "billing", body=request)

    def pay(self, micros: int, *, month: str = "") -> ProfileAnswer:
        """Record a payment: for the invoice of a month, or in advance."""
        request = PaymentRequest(micros=micros, month=month or None)
        return self._create(ProfileAnswer, "payments", body=request)
