"""Purchases: months and reservations of an instance, and purchase limits of members."""

from teraflock.client.noun import Noun
from teraflock.wire.purchase import (
    LimitAnswer,
    LimitList,
    LimitRequest,
    PreviewAnswer,
    PurchaseAnswer,
    PurchaseList,
    PurchaseRequest,
    RenewalChange,
)


class Purchases(Noun):
    def list(self) -> tuple[PurchaseAnswer, ...]:
        return self._get(PurchaseList, "purchases").items

    def buy(self, request: PurchaseRequest) -> PurchaseAnswer:
        return self._create(PurchaseAnswer, "purchases", body=request)

    def preview(self, request: PurchaseRequest) -> PreviewAnswer:
        return self._act("POST", PreviewAnswer, "purchase-preview", body=request)

    def set_renewal(self, purchase: str, renews: bool) -> PurchaseAnswer:
        return self._act("PATCH", PurchaseAnswer, "purchases", purchase, body=RenewalChange(renews=renews))

    def upgrade(self, purchase: str) -> PurchaseAnswer:
        return self._act("POST", PurchaseAnswer, "purchases", purchase, "upgrade")

    def end(self, purchase: str) -> PurchaseAnswer:
        return self._act("DELETE", PurchaseAnswer, "purchases", purchase)

    def limits(self) -> tuple[LimitAnswer, ...]:
        return self._get(LimitList, "purchase-limits").items

    def set_limit(self, member: str, micros: int | None) -> None:
        """Set the limit. None removes it."""
        if micros is None:
            self._send("DELETE", "purchase-limits", member)
        else:
            self._send("PUT", "purchase-limits", member, body=LimitRequest(micros=micros))
