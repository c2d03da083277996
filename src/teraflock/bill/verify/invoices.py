"""Checks invoices against the charges and payments they cover."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import msgspec

from teraflock.bill.verify import store
from teraflock.bill.verify.check import Fault
from teraflock.bill.verify.entries import check_sides
from teraflock.bill.verify.row import Named
from teraflock.storage.database import Transaction


def check_invoice(tx: Transaction, row: Named, before: Named | None) -> Iterator[Fault]:
    document = msgspec.json.decode(row["document"])
    usage = sum(charge["micros"] for charge in store.charges_until(tx, row, before))
    drawn, settled = 0, 0
    for entry in store.payments_until(tx, row, before):
        micros = -entry["micros"] if entry["kind"] == "returned" else entry["micros"]
        if entry["subject"].startswith("balance/"):
            settled += micros
        else:
            drawn += micros
    tax = round(Fraction(max(0, usage - drawn) * document["tax_bp"], 10_000))
    expected = {
        "usage_micros": usage, "credit_micros": drawn, "tax_micros": tax, "paid_micros": settled,
        "due_micros": usage - drawn + tax - settled,
        "charges_after": before["charges_until"] if before else 0,
        "charges_until": document["charges_until"], "month": document["month"],
    }  # fmt: skip
    for name, value in expected.items():
        if row[name] != value:
            yield Fault(where=f"invoice {row['number']}", what=f"{name} is {row[name]}, must be {value}")
    if sum(line["micros"] for line in document["lines"]) != usage:
        yield Fault(where=f"invoice {row['number']}", what="its lines do not add up")


def check_invoice_entries(row: Named | None, entries: Sequence[Named]) -> Iterator[Fault]:
    if row is None:
        yield Fault(where=f"ledger {entries[0]['number']}", what="its invoice does not exist")
        return
    project = f"project/{row['project_id']}"
    for entry in entries:
        balance = f"balance/{row['project_id']}"
        sides = {"tax": (project, "tax"), "payment": ("cash", project), "cleared": (balance, project)}
        yield from check_sides(entry, sides, row["project_id"], row["currency"])
    taxes = [entry["micros"] for entry in entries if entry["kind"] == "tax"]
    if sum(taxes) != row["tax_micros"]:
        yield Fault(
            where=f"invoice {row['number']}",
            what=f"its tax in the ledger is {sum(taxes)}, must be {row['tax_micros']}",
        )
