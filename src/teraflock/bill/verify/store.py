"""Reads the rows of the books, by the names of their columns, and events, ordered by their subject.

Only the whole installation can be verified, so every read here crosses tenants.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from teraflock.bill.verify.row import Named
from teraflock.storage.database import Transaction

_COLUMNS: Final = {
    "meter_interval": (
        "number, instance_id, sequence, revision, generation, project_id, from_us, until_us, run_us, ends_run,"
        " operator_fault, gpu, gpus, vcpus, ram_bytes, disk_bytes, snapshots_bytes, mode, card_micros_per_hour,"
        " host, region, name, member, labels"
    ),
    "meter_reading": "number, instance_id, sequence, epoch, bytes, bytes_before, at_us",
    "charge": (
        "number, subject, generation, sequence, segment, kind, reverses, project_id, month, from_us, until_us,"
        " currency, micros, gpu_micros, vcpu_micros, ram_micros, disk_micros, snapshot_micros,"
        " egress_micros, minimum_micros, fee_micros, list_micros, gpu, gpus, vcpus, ram_bytes, disk_bytes,"
        " snapshots_bytes, egress_bytes, mode, card_micros_per_hour, purchase_id, version, discount_bp, host, region,"
        " name, member, labels, booked_at_us"
    ),
    "ledger": (
        "number, at_us, kind, project_id, debit, credit, currency, micros, subject, generation, sequence, segment"
    ),
    "site_watch": "site, from_us, until_us",
    "ran_unwatched": "instance_id, at_us, sequence, started_us",
    "purchase_term": (
        "purchase_id, sequence, kind, instance_id, from_us, until_us, gpu, gpus, vcpus, ram_bytes, disk_bytes,"
        " currency, month_micros, fee_micros"
    ),
    "credit_grant": "id, project_id, currency, micros, from_us, expires_us, drawn_micros, expired, moves",
    "invoice": (
        "number, project_id, month, currency, charges_after, charges_until, usage_micros, credit_micros, tax_micros,"
        " paid_micros, due_micros, issued_at_us, document"
    ),
    "host_cost": (
        "number, host_id, instance_id, project_id, from_us, micros_per_hour, currency, recorded_at_us"
    ),
    "host_size": "host_id, from_us, gpu_parts, vcpus, ram_bytes",
    "host_use": "instance_id, sequence, host_id, project_id, from_us, until_us, gpu_parts, vcpus, ram_bytes",
    "host_use_open": (
        "instance_id, sequence, at_us, began_sequence, host_id, project_id, from_us, gpu_parts, vcpus, ram_bytes"
    ),
    "cost": (
        "number, kind, reverses, host_id, day, instance_id, project_id, month, from_us, until_us, currency, micros"
    ),
    "cost_host": "host_id, booked_until_us",
    "auction": "id, at_us, host_id, region, gpu, currency, floor_micros, price_micros, entries",
}
_ORDER: Final = {
    "meter_interval": "instance_id, sequence, revision",
    "meter_reading": "instance_id, number",
    "charge": "subject, sequence, segment",
    "ledger": "subject, sequence, segment, kind",
    "site_watch": "site, from_us",
    "ran_unwatched": "instance_id, at_us",
    "purchase_term": "purchase_id, sequence",
    "credit_grant": "id",
    "invoice": "number",
    "host_cost": "host_id, number",
    "host_size": "host_id, from_us",
    "host_use": "instance_id, sequence",
    "host_use_open": "instance_id",
    "cost": "host_id, day, number",
    "cost_host": "host_id",
    "auction": "host_id, gpu, id",
}


def rows(tx: Transaction, table: str, order: str = "") -> Iterator[Named]:
    """All rows of a table, ordered so that rows about one subject are adjacent."""
    names = [name.strip() for name in _COLUMNS[table].split(",")]
    for row in tx.each(f"SELECT {_COLUMNS[table]} FROM {table} ORDER BY {order or _ORDER[table]}"):
        yield dict(zip(names, row, strict=True))


def events(tx: Transaction, *nouns: str) -> Iterator[Named]:
    """Events of some nouns: their details with `subject`, `at_us`, `project_id` and `kind`."""
    patterns = {f"pattern_{index}": f"{noun}.%" for index, noun in enumerate(nouns)}
    found = tx.each(
        "SELECT subject, at_us, project_id, kind, details FROM event"
        f" WHERE {' OR '.join(f'kind LIKE :{name}' for name in patterns)} ORDER BY subject, id",
        **patterns,
    )
    for subject, at_us, project_id, kind, details in found:
        said = msgspec.json.decode(details)
        yield {**said, "subject": subject, "at_us": at_us, "project_id": project_id, "kind": kind}


def taken(tx: Transaction) -> dict[str, int]:
    """The number of changes of each instance that the meter has applied."""
    return {row[0]: int(row[1]) for row in tx.each("SELECT instance_id, sequence FROM meter_instance")}


def sites(tx: Transaction) -> dict[str, str]:
    """The sites of hosts, by their ids."""
    return {row[0]: row[1] for row in tx.all("SELECT id, site FROM host")}


def currencies(tx: Transaction) -> dict[str, str]:
    """How projects pay, if that was set."""
    return {row[0]: row[1] for row in tx.all("SELECT project_id, currency FROM bill_profile")}


def numbers(tx: Transaction, table: str) -> tuple[int, int, int]:
    """The number of rows, and their lowest and highest number."""
    row = tx.one(f"SELECT COUNT(*), COALESCE(MIN(number), 1), COALESCE(MAX(number), 0) FROM {table}")
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2])


def cursors(tx: Transaction) -> Named:
    made = {row[0]: row[1] for row in tx.all("SELECT name, intervals FROM meter_cursor")}
    bill = tx.one("SELECT intervals, charges, entries, booked_until_us FROM bill_cursor") or (0, 0, 0, 0)
    names = ("intervals_charged", "charges", "entries", "booked_until_us")
    counts = {"intervals": made.get("meter", 0), "readings": made.get("readings", 0)}
    costs = tx.one("SELECT rates, lines FROM cost_cursor") or (0, 0)
    counts |= {"host_costs": costs[0], "cost_lines": costs[1]}
    return {**counts, **dict(zip(names, bill, strict=True))}


def accounts(tx: Transaction) -> dict[tuple[str, str], tuple[int, int]]:
    found = tx.all("SELECT name, currency, debits, credits FROM account")
    return {(row[0], row[1]): (int(row[2]), int(row[3])) for row in found}


def charge_sums(tx: Transaction) -> dict[tuple[str, ...], tuple[int, int, int]]:
    found = tx.each(
        "SELECT project_id, month, currency, gpu, member, labels, kind, lines, micros, list_micros FROM charge_sum"
    )
    return {row[:7]: (int(row[7]), int(row[8]), int(row[9])) for row in found}


def trial_balance(tx: Transaction) -> dict[str, tuple[int, int]]:
    found = tx.all("SELECT currency, debits, credits FROM trial_balance")
    return {row[0]: (int(row[1]), int(row[2])) for row in found}


def charges_until(tx: Transaction, invoice: Named, before: Named | None) -> Iterator[Named]:
    """The charges of an invoice: of its month and earlier ones, minus those of earlier invoices."""
    for charge in _of_project(tx, "charge", invoice["project_id"]):
        is_old = (
            before is not None
            and charge["month"] <= before["month"]
            and charge["number"] <= before["charges_until"]
        )
        if (
            charge["month"] <= invoice["month"]
            and charge["number"] <= invoice["charges_until"]
            and not is_old
        ):
            yield charge


def payments_until(tx: Transaction, invoice: Named, before: Named | None) -> Iterator[Named]:
    for entry in _of_project(tx, "ledger", invoice["project_id"]):
        if entry["kind"] not in ("drawn", "settled", "returned"):
            continue
        is_old = before is not None and _stood_on(entry, before)
        if _stood_on(entry, invoice) and not is_old:
            yield entry


def _stood_on(entry: Named, invoice: Named) -> bool:
    until = msgspec.json.decode(invoice["document"])["entries_until"]
    year, month = divmod(entry["generation"], 100)
    return bool(f"{year:04}-{month:02}" <= invoice["month"] and entry["number"] <= until)


def _of_project(tx: Transaction, table: str, project_id: str) -> Iterator[Named]:
    names = [name.strip() for name in _COLUMNS[table].split(",")]
    found = tx.each(
        f"SELECT {_COLUMNS[table]} FROM {table} WHERE project_id = :project ORDER BY number",
        project=project_id,
    )
    for row in found:
        yield dict(zip(names, row, strict=True))
