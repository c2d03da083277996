"""Billing profiles and payments on the wire."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from teraflock.wire.field import Micros, Month

Text = Annotated[str, Meta(max_length=500, pattern=r"^[^\u0000]*$(?!\n)")]
CurrencyCode = Annotated[str, Meta(pattern=r"^[A-Z]{3}$(?!\n)")]


class ProfileShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a project pays: by invoice, or in advance."""

    currency: CurrencyCode
    pays: Literal["invoice", "prepaid"] = "invoice"
    tax_name: Annotated[str, Meta(max_length=40, pattern=r"^[^\u0000-\u001f]*$(?!\n)")] = ""
    """Empty: the tax of the price book."""
    tax_basis_points: Annotated[int, Meta(ge=0, le=10_000)] = 0
    customer: Text = ""
    """The customer's name and address, as lines on invoices."""
    tax_number: Annotated[str, Meta(max_length=60, pattern=r"^[^\u0000-\u001f]*$(?!\n)")] = ""
    """The customer's tax number, for invoices."""


class ProfileAnswer(msgspec.Struct, frozen=True, kw_only=True):
    currency: str
    pays: str
    tax_name: str
    tax_basis_points: int
    customer: str
    tax_number: str = ""
    balance_micros: int
    """What was paid in advance, minus charges."""
    owed_micros: int
    pending_micros: int = 0
    """Usage that is not charged yet. It is charged when it ends, or at the end of the day."""
    available_micros: int = 0
    """For prepaid projects: balance and credits, minus what is owed and what is not charged yet."""


class PaymentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    micros: Micros
    month: Month | None = None
    """The month of the invoice that is paid. Null: a payment in advance."""
