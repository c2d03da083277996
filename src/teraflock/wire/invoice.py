"""Invoices on the wire."""

from datetime import datetime

import msgspec

from teraflock.wire.field import Month


class InvoiceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    month: Month


class InvoiceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    number: str
    month: str
    currency: str
    usage_micros: int
    credit_micros: int
    tax_micros: int
    paid_micros: int
    due_micros: int
    """The amount due. Below zero: a refund to the project."""
    open_micros: int
    """The part that is not paid yet."""
    issued_at: datetime


class InvoiceList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[InvoiceAnswer, ...]
