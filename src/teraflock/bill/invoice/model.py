"""An invoice, and all that stands on it."""

import msgspec


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What one instance cost in the month, or one fee."""

    what: str
    details: str
    quantity: str
    micros: int
    month: str = ""
    """Of what is late: the month it is for, which was invoiced before."""
    unit_price: str = ""
    """What one of the quantity costs, discounts included; empty where parts of the line cost differently."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What is printed. Kept with the invoice, so that it reads the same for ever."""

    project: str
    month: str
    customer: str
    tax_name: str
    tax_bp: int
    charges_until: int
    entries_until: int
    """The ledger's newest entry when it was issued: later payments stand on the next."""
    lines: tuple[Line, ...]
    """One for each instance and fee."""
    annex: tuple[Line, ...] = ()
    """What the lines of instances are made of: each shape, and traffic. Invoices of before have none."""
    organisation: str = ""
    tax_number: str = ""
    """The customer's."""
    due_at_us: int = 0
    """When it is to be paid by; 0: it does not say."""


class Invoice(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    """0: a preview, which has none."""
    project_id: str
    month: str
    currency: str
    charges_after: int
    charges_until: int
    """It has the charges of its month up to this number, and those of earlier months since the invoice before."""
    usage_micros: int
    credit_micros: int
    tax_micros: int
    paid_micros: int
    due_micros: int
    issued_at_us: int
    document: Document
