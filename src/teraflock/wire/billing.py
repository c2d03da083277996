"""How a project pays, as the API has it, and its payments."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from teraflock.wire.field import Micros, Month

Text = Annotated[str, Meta(max_length=500, pattern=r"^[^\u0000]*$(?!\n)")]
CurrencyCode = Annotated[str, Meta(pattern=r"^[A-Z]{3}$(?!\n)")]


class ProfileShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a project pays."""

    currency: CurrencyCode
    pays: Literal["invoice", "prepaid"] = "invoice"
    tax_name: Annotated[str, Meta(max_length=40, pattern=r"^[^\u0000-\u001f]*$(?!\n)")] = ""
    """Empty: as the price book says."""
    tax_basis_points: Annotated[int, Meta(ge=0, le=10_000)] = 0
    customer: Text = ""
    """Lines of an address, for invoices."""
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
    """Paid in advance, less what was booked."""
    owed_micros: int
    pending_micros: int = 0
    """Used, and not booked yet: it is booked when it is given back, or the day is over."""
    available_micros: int = 0
    """Of a project that pays in advance: balance and credits, less what is owed and what is not booked."""


class PaymentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    micros: Micros
    month: Month | None = None
    """Of the invoice that is paid; null: paid in advance."""
