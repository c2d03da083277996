"""SQL of the biller: its cursor, and how projects pay."""

from typing import Final

import msgspec

from teraflock.storage.database import Transaction
from teraflock.storage.table import Table
from teraflock.tenant.model import ProjectId


class BillCursor(msgspec.Struct, frozen=True, kw_only=True):
    intervals: int = 0
    """Intervals up to this number are charged."""
    charges: int = 0
    entries: int = 0
    booked_until_us: int = 0
    """Days before this time are closed."""
    latest_us: int = 0
    """The end of the latest charged time. No price and no purchase may start before it."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """How a project pays."""

    project_id: ProjectId
    currency: str
    pays: str = "invoice"
    """`invoice` at the end of the month, or `prepaid` from its balance."""
    tax_name: str = ""
    tax_bp: int = 0
    customer: str = ""
    tax_number: str = ""
    """Of the customer, for invoices."""


_CURSOR: Final = Table("bill_cursor", BillCursor)
_PROFILE: Final = Table("bill_profile", Profile)


def cursor(tx: Transaction) -> BillCursor:
    return _CURSOR.one(tx, "WHERE name = 'bill'") or BillCursor()


def hold(tx: Transaction) -> BillCursor:
    """Lock the cursor and return it. A second writer waits here before it assigns numbers."""
    tx.run("UPDATE bill_cursor SET name = name WHERE name = 'bill'")
    return cursor(tx)


def set_cursor(tx: Transaction, cursor: BillCursor) -> None:
    tx.run(
        "UPDATE bill_cursor SET intervals = :intervals, charges = :charges, entries = :entries,"
        " booked_until_us = :until, latest_us = :latest WHERE name = 'bill'",
        intervals=cursor.intervals,
        charges=cursor.charges,
        entries=cursor.entries,
        until=cursor.booked_until_us,
        latest=cursor.latest_us,
    )


def profiles(tx: Transaction) -> dict[str, Profile]:
    """Of all projects that have one, for the biller."""
    return {row[0]: _PROFILE.value(row) for row in tx.all(_PROFILE.select)}


def pays(tx: Transaction, project_id: ProjectId) -> str:
    """`invoice` or `prepaid`."""
    row = tx.one("SELECT pays FROM bill_profile WHERE project_id = :project", project=project_id)
    return str(row[0]) if row else "invoice"


def set_profile(tx: Transaction, profile: Profile) -> None:
    tx.run_many(_PROFILE.upsert("project_id"), [_PROFILE.row(profile)])
