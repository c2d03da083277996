"""An invoice and its contents."""

import msgspec

from teraflock.tenant.model import ProjectId


class InvoiceLine(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one instance in the month, or one fee."""

    what: str
    details: str
    quantity: str
    micros: int
    month: str = ""
    """For a late charge: the month it belongs to, which was invoiced before."""
    unit_price: str = ""
    """Price per unit, including discounts. Empty if parts of the line have different prices."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The printed contents. Stored with the invoice, so that they never change."""

    project: str
    month: str
    customer: str
    tax_name: str
    tax_bp: int
    charges_until: int
    entries_until: int
    """The newest ledger entry at the time of issue. Later payments are on the next invoice."""
    lines: tuple[InvoiceLine, ...]
    """One line for each instance and fee."""
    annex: tuple[InvoiceLine, ...] = ()
    """The details of instance lines: each shape, and traffic. Older invoices have none."""
    organisation: str = ""
    tax_number: str = ""
    """The customer's tax number."""
    due_at_us: int = 0
    """The due date; 0 for none."""


class Invoice(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    """0 for a preview, which has no number."""
    project_id: ProjectId
    month: str
    currency: str
    charges_after: int
    charges_until: int
    """The invoice has the charges of its month up to this number, and those of earlier months since the previous
    invoice."""
    usage_micros: int
    credit_micros: int
    tax_micros: int
    paid_micros: int
    due_micros: int
    issued_at_us: int
    document: Document
