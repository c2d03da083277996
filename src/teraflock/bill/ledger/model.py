"""Accounts and entries. An entry moves one amount from one account to another, so it always balances.

project/ID     what a project owes the provider           grows by debits
balance/ID     what a project has paid in advance         grows by credits
credit/ID      what is left of a granted credit           grows by credits
revenue, tax   what was charged, and the tax on it        grow by credits
cash           what was paid                              grows by debits
promotion      what was given away                        grows by debits
"""

from typing import Final

import msgspec

from teraflock.tenant.model import ProjectId

REVENUE: Final = "revenue"
TAX: Final = "tax"
CASH: Final = "cash"
PROMOTION: Final = "promotion"


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    kind: str
    """charge, reversal, granted, drawn, returned, lapsed, paid-in, settled, tax, payment or cleared.

    `payment` comes from outside and `cleared` from the balance. Both pay an invoice and are printed on none."""
    project_id: ProjectId
    debit: str
    credit: str
    currency: str
    micros: int
    """Always positive. An entry in the other direction swaps debit and credit."""
    subject: str
    generation: int = 0
    sequence: int = 0
    segment: int = 0
    """Part of the unique key, with the subject, the kind and the next two fields."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    currency: str
    debits: int = 0
    credits: int = 0

    @property
    def owed(self) -> int:
        """Debits minus credits: what the account's owner owes the provider."""
        return self.debits - self.credits


def owes(project_id: ProjectId) -> str:
    return f"project/{project_id}"


def paid_ahead(project_id: ProjectId) -> str:
    return f"balance/{project_id}"


def granted(grant_id: str) -> str:
    return f"credit/{grant_id}"
