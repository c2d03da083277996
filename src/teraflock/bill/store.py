"""SQL of the biller itself: how far it has come, and how projects pay."""

import msgspec

from teraflock.storage.database import Transaction


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    intervals: int = 0
    """Up to this number, intervals are charged."""
    charges: int = 0
    entries: int = 0
    booked_until_us: int = 0
    """Up to here, days are closed."""
    latest_us: int = 0
    """The end of the latest time that was charged: no price and no purchase may begin to count before."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """How a project pays."""

    project_id: str
    currency: str
    pays: str = "invoice"
    """`invoice` at the end of the month, or `prepaid` from its balance."""
    tax_name: str = ""
    tax_bp: int = 0
    customer: str = ""
    tax_number: str = ""
    """The customer's, for invoices."""


def cursor(tx: Transaction) -> Cursor:
    row = tx.one(
        "SELECT intervals, charges, entries, booked_until_us, latest_us FROM bill_cursor WHERE name = 'bill'"
    )
    if row is None:
        return Cursor()
    return Cursor(intervals=row[0], charges=row[1], entries=row[2], booked_until_us=row[3], latest_us=row[4])


def hold(tx: Transaction) -> Cursor:
    """The cursor, for a work that will move it: whoever comes second waits here, before anything is numbered."""
    tx.run("UPDATE bill_cursor SET name = name WHERE name = 'bill'")
    return cursor(tx)


def set_cursor(tx: Transaction, cursor: Cursor) -> None:
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
    rows = tx.all(
        "SELECT project_id, currency, pays, tax_name, tax_bp, customer, tax_number FROM bill_profile"
    )
    return {
        row[0]: Profile(
            project_id=row[0],
            currency=row[1],
            pays=row[2],
            tax_name=row[3],
            tax_bp=row[4],
            customer=row[5],
            tax_number=row[6],
        )
        for row in rows
    }


def pays(tx: Transaction, project_id: str) -> str:
    """`invoice` or `prepaid`."""
    row = tx.one("SELECT pays FROM bill_profile WHERE project_id = :project", project=project_id)
    return str(row[0]) if row else "invoice"


def set_profile(tx: Transaction, profile: Profile) -> None:
    tx.run(
        "INSERT INTO bill_profile (project_id, currency, pays, tax_name, tax_bp, customer, tax_number)"
        " VALUES (:project, :currency, :pays, :tax_name, :tax_bp, :customer, :tax_number)"
        " ON CONFLICT (project_id) DO UPDATE SET"
        " currency = excluded.currency, pays = excluded.pays, tax_name = excluded.tax_name,"
        " tax_bp = excluded.tax_bp, customer = excluded.customer,"
        " tax_number = excluded.tax_number",
        project=profile.project_id,
        currency=profile.currency,
        pays=profile.pays,
        tax_name=profile.tax_name,
        tax_bp=profile.tax_bp,
        customer=profile.customer,
        tax_number=profile.tax_number,
    )
