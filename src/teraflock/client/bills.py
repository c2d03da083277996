"""Prices, quotes, bills, budgets, credits, purchases, invoices."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, TypeVar, cast

from teraflock.client.transport import Transport, pages, path_of
from teraflock.wire.bill import BillAnswer, CostAnswer, CostPage, LineAnswer, LinePage, VerdictAnswer
from teraflock.wire.billing import PaymentRequest, ProfileAnswer, ProfileShape
from teraflock.wire.budget import BudgetAnswer, BudgetRequest, CapRequest
from teraflock.wire.credit import CreditAnswer, CreditList, CreditRequest
from teraflock.wire.invoice import InvoiceAnswer, InvoiceList, InvoiceRequest
from teraflock.wire.price import BookRequest, PeriodsAnswer, PricesAnswer
from teraflock.wire.purchase import (
    LimitList,
    LimitRequest,
    PreviewAnswer,
    PurchaseAnswer,
    PurchaseList,
    PurchaseRequest,
    RenewalChange,
)
from teraflock.wire.quote import QuoteAnswer, QuoteRequest

PAGE: Final = 200
Made = TypeVar("Made")
LONG_SECONDS: Final = 600.0  # for the proof of large books, and for their export


class Bills(Transport):
    def prices(self) -> PricesAnswer:
        return self.get(path_of("prices"), PricesAnswer)

    def set_prices(self, text: str, *, name: str = "prices.yaml") -> PeriodsAnswer:
        return self.act("PUT", path_of("prices"), PeriodsAnswer, BookRequest(text=text, name=name))

    def quote(self, request: QuoteRequest) -> QuoteAnswer:
        return self.act("POST", path_of("quote"), QuoteAnswer, request, **self.in_project())

    def bill(self, *, month: str = "", by: str = "gpu", label: str = "") -> BillAnswer:
        query = self.in_project(month=month or None, by=by, label=label or None)
        return self.get(path_of("bill"), BillAnswer, **query)

    def bill_lines(self, *, month: str = "", after: str = "", limit: int = PAGE) -> LinePage:
        query = self.in_project(month=month or None, after=after, limit=limit)
        return self.get(path_of("bill", "lines"), LinePage, **query)

    def all_bill_lines(self, *, month: str = "") -> list[LineAnswer]:
        return pages(lambda after: self.bill_lines(month=month, after=after))

    def focus(self, *, month: str = "") -> Iterator[bytes]:
        """CSV in the columns of FOCUS 1.2, in pieces as they come."""
        return self.pieces(path_of("bill", "focus"), self.in_project(month=month or None), LONG_SECONDS)

    def verify_bills(self) -> VerdictAnswer:
        content = self.request("POST", path_of("bill", "verify"), seconds_max=LONG_SECONDS)
        return self._decoded(content, VerdictAnswer)

    def costs(self, *, after: str = "", limit: int = PAGE) -> CostPage:
        return self.get(path_of("costs"), CostPage, **self.in_project(after=after, limit=limit))

    def all_costs(self) -> list[CostAnswer]:
        return pages(lambda after: self.costs(after=after))

    def budget(self) -> BudgetAnswer:
        return self.get(path_of("budget"), BudgetAnswer, **self.in_project())

    def set_budget(self, request: BudgetRequest) -> BudgetAnswer:
        return self.act("PUT", path_of("budget"), BudgetAnswer, request, **self.in_project())

    def remove_budget(self) -> None:
        self.request("DELETE", path_of("budget"), query=self.in_project())

    def credits(self) -> CreditList:
        return self.get(path_of("credits"), CreditList, **self.in_project())

    def give_credit(self, micros: int, reason: str, *, expires_at: datetime | None = None) -> CreditAnswer:
        request = CreditRequest(micros=micros, reason=reason, expires_at=expires_at)
        return self._made("credits", CreditAnswer, request)

    def billing(self) -> ProfileAnswer:
        return self.get(path_of("billing"), ProfileAnswer, **self.in_project())

    def set_billing(self, request: ProfileShape) -> ProfileAnswer:
        return self.act("PUT", path_of("billing"), ProfileAnswer, request, **self.in_project())

    def pay(self, micros: int, *, month: str = "") -> ProfileAnswer:
        return self._made("payments", ProfileAnswer, PaymentRequest(micros=micros, month=month or None))

    def purchases(self) -> PurchaseList:
        return self.get(path_of("purchases"), PurchaseList, **self.in_project())

    def buy(self, request: PurchaseRequest) -> PurchaseAnswer:
        return self._made("purchases", PurchaseAnswer, request)

    def preview_purchase(self, request: PurchaseRequest) -> PreviewAnswer:
        return self.act("POST", path_of("purchase-preview"), PreviewAnswer, request, **self.in_project())

    def purchase_limits(self) -> LimitList:
        return self.get(path_of("purchase-limits"), LimitList, **self.in_project())

    def set_purchase_limit(self, member: str, micros: int | None) -> None:
        """None removes it."""
        path = path_of("purchase-limits", member)
        if micros is None:
            self.request("DELETE", path, query=self.in_project())
        else:
            self.request("PUT", path, body=LimitRequest(micros=micros), query=self.in_project())

    def set_budget_cap(self, request: CapRequest | None) -> None:
        """None lifts it."""
        path = path_of("budget", "cap")
        if request is None:
            self.request("DELETE", path, query=self.in_project())
        else:
            self.act("PUT", path, BudgetAnswer, request, **self.in_project())

    def set_renewal(self, purchase: str, renews: bool) -> PurchaseAnswer:
        path = path_of("purchases", purchase)
        return self.act("PATCH", path, PurchaseAnswer, RenewalChange(renews=renews), **self.in_project())

    def upgrade_purchase(self, purchase: str) -> PurchaseAnswer:
        return self.act(
            "POST", path_of("purchases", purchase, "upgrade"), PurchaseAnswer, **self.in_project()
        )

    def end_purchase(self, purchase: str) -> PurchaseAnswer:
        return self.act("DELETE", path_of("purchases", purchase), PurchaseAnswer, **self.in_project())

    def invoices(self) -> InvoiceList:
        return self.get(path_of("invoices"), InvoiceList, **self.in_project())

    def issue_invoice(self, month: str) -> InvoiceAnswer:
        return self._made("invoices", InvoiceAnswer, InvoiceRequest(month=month))

    def invoice_preview(self, month: str = "", *, pdf: bool = False) -> bytes:
        """HTML, or a PDF."""
        path = path_of("invoice-preview", "pdf") if pdf else path_of("invoice-preview")
        return self.request("GET", path, query=self.in_project(month=month or None))

    def invoice_page(self, month: str) -> bytes:
        """HTML."""
        return self.request("GET", path_of("invoices", month), query=self.in_project())

    def invoice_pdf(self, month: str) -> bytes:
        return self.request("GET", path_of("invoices", month, "pdf"), query=self.in_project())

    def _made(self, noun: str, kind: type[Made], body: object) -> Made:
        return self.create(path_of(noun), kind, body, **cast(dict[str, Any], self.in_project()))
