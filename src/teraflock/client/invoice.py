"""Invoices: list, issue, preview, print."""

from teraflock.client.noun import Noun
from teraflock.client.transport import path_of
from teraflock.wire.invoice import InvoiceAnswer, InvoiceList, InvoiceRequest


class Invoices(Noun):
    def list(self) -> tuple[InvoiceAnswer, ...]:
        return self._get(InvoiceList, "invoices").items

    def issue(self, month: str) -> InvoiceAnswer:
        return self._create(InvoiceAnswer, "invoices", body=InvoiceRequest(month=month))

    def preview(self, month: str = "", *, pdf: bool = False) -> bytes:
        """HTML, or a PDF."""
        return self._content("invoice-preview", *(["pdf"] if pdf else []), month=month)

    def html(self, month: str) -> bytes:
        return self._content("invoices", month)

    def pdf(self, month: str) -> bytes:
        return self._content("invoices", month, "pdf")

    def _content(self, *path: str, **query: object) -> bytes:
        return self._transport.request("GET", path_of(*path), query=self._query(query))
