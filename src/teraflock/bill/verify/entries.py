"""Checks the ledger against charges, credits and payments, and the accounts against the ledger."""

from collections.abc import Iterator, Mapping, Sequence

from teraflock.bill.verify.check import Fault
from teraflock.bill.verify.row import Named

Sides = tuple[str, str]
FOR_A_MONTH = ("drawn", "settled", "returned")
"""Entries that name the month they pay for."""


def check_charge_entries(charges: Sequence[Named], entries: Sequence[Named]) -> Iterator[Fault]:
    """Every charge with an amount has exactly one entry, and every such entry has its charge."""
    by_key = {(row["generation"], row["sequence"], row["segment"]): row for row in entries}
    for charge in charges:
        entry = by_key.pop((charge["generation"], charge["sequence"], charge["segment"]), None)
        if entry is None:
            if charge["micros"]:
                yield Fault(where=f"charge {charge['number']}", what="has no entry in the ledger")
            continue
        project = f"project/{charge['project_id']}"
        debit, credit = (project, "revenue") if charge["micros"] > 0 else ("revenue", project)
        expected = {
            "kind": "reversal" if charge["kind"] == "reversal" else "charge", "project_id": charge["project_id"],
            "debit": debit, "credit": credit, "currency": charge["currency"], "micros": abs(charge["micros"]),
            "at_us": charge["booked_at_us"],
        }  # fmt: skip
        for name, value in expected.items():
            if entry[name] != value:
                yield Fault(
                    where=f"ledger {entry['number']}", what=f"{name} is {entry[name]!r}, must be {value!r}"
                )
    for entry in by_key.values():
        yield Fault(where=f"ledger {entry['number']}", what="no charge explains it")


def check_grant(grant: Named, entries: Sequence[Named]) -> Iterator[Fault]:
    """The totals of a credit match the sums of its entries."""
    where, own = f"credit_grant {grant['id']}", f"credit/{grant['id']}"
    project = f"project/{grant['project_id']}"
    sums = {"granted": 0, "drawn": 0, "returned": 0, "lapsed": 0}
    sides: Mapping[str, Sides] = {
        "granted": ("promotion", own), "drawn": (own, project), "returned": (project, own),
        "lapsed": (own, "promotion"),
    }  # fmt: skip
    for entry in entries:
        yield from check_sides(entry, sides, grant["project_id"], grant["currency"])
        sums[entry["kind"]] = sums.get(entry["kind"], 0) + entry["micros"]
    moves = sorted(entry["sequence"] for entry in entries if entry["kind"] != "granted")
    if moves != list(range(grant["moves"])):
        yield Fault(where=where, what=f"has {len(moves)} entries, must have {grant['moves']}")
    drawn = sums["drawn"] - sums["returned"]
    lapsed = grant["micros"] - drawn if grant["expired"] else 0
    for what, found, must in (
        ("granted", sums["granted"], grant["micros"]),
        ("drawn", grant["drawn_micros"], drawn),
        ("lapsed", sums["lapsed"], lapsed),
    ):
        if found != must:
            yield Fault(where=where, what=f"{what}: {found}, must be {must}")
    if grant["expired"] not in (0, 1):
        yield Fault(where=where, what=f"expired is {grant['expired']!r}, must be 0 or 1")


def check_balance(project_id: str, currency: str, entries: Sequence[Named]) -> Iterator[Fault]:
    own, project = f"balance/{project_id}", f"project/{project_id}"
    sides: Mapping[str, Sides] = {
        "paid-in": ("cash", own), "settled": (own, project), "returned": (project, own), "paid-out": (own, "cash"),
    }  # fmt: skip
    for entry in entries:
        yield from check_sides(entry, sides, project_id, currency)


def check_sides(entry: Named, sides: Mapping[str, Sides], project_id: str, currency: str) -> Iterator[Fault]:
    where = f"ledger {entry['number']}"
    if entry["kind"] not in sides:
        yield Fault(where=where, what=f"has an unexpected kind: {entry['kind']}")
    elif (entry["debit"], entry["credit"]) != sides[entry["kind"]]:
        yield Fault(where=where, what=f"moves from {entry['debit']} to {entry['credit']}")
    if (entry["project_id"], entry["currency"]) != (project_id, currency):
        yield Fault(
            where=where,
            what=f"is for project {entry['project_id']} in {entry['currency']}, must be for {project_id} in {currency}",
        )
    if entry["micros"] <= 0:
        yield Fault(where=where, what="has an amount that is not positive")
    if entry["segment"] or (entry["kind"] not in FOR_A_MONTH and entry["generation"]):
        yield Fault(where=where, what="has a key that is invalid for its kind")
    if entry["kind"] in ("granted", "tax") and entry["sequence"]:
        yield Fault(where=where, what="has a sequence, although there is only one entry of its kind")
    own = entry["kind"] in ("paid-in", "settled", "payment", "cleared") or entry["subject"].startswith(
        "balance/"
    )
    if own and entry["sequence"] != entry["number"]:
        yield Fault(where=where, what=f"its sequence is {entry['sequence']}, must be its number")


class Sums:
    """Sums the ledger while it is streamed, to compare it with the accounts."""

    def __init__(self) -> None:
        self.accounts: dict[tuple[str, str], list[int]] = {}
        self.entries = 0

    def add(self, entry: Named) -> None:
        self.entries += 1
        self.accounts.setdefault((entry["debit"], entry["currency"]), [0, 0])[0] += entry["micros"]
        self.accounts.setdefault((entry["credit"], entry["currency"]), [0, 0])[1] += entry["micros"]

    def check(
        self, kept: Mapping[tuple[str, str], tuple[int, int]], trial: Mapping[str, tuple[int, int]]
    ) -> Iterator[Fault]:
        for key in sorted({*kept, *self.accounts}):
            found, must = kept.get(key, (0, 0)), tuple(self.accounts.get(key, (0, 0)))
            if found != must:
                yield Fault(where=f"account {key[0]} {key[1]}", what=f"has {found}, must have {must}")
        for currency in sorted({*trial, *(currency for _, currency in kept)}):
            debits = sum(amounts[0] for key, amounts in kept.items() if key[1] == currency)
            credits = sum(amounts[1] for key, amounts in kept.items() if key[1] == currency)
            if debits != credits:
                yield Fault(where=f"account, {currency}", what=f"debits are {debits}, credits are {credits}")
            if trial.get(currency) != (debits, credits):
                yield Fault(where=f"trial_balance {currency}", what=f"has {trial.get(currency)}")


class Months:
    """Sums the charges while they are streamed, to compare them with the sums on a bill."""

    _KEY = ("project_id", "month", "currency", "gpu", "member", "labels", "kind")

    def __init__(self) -> None:
        self._sums: dict[tuple[str, ...], list[int]] = {}

    def add(self, charge: Named) -> None:
        total = self._sums.setdefault(tuple(charge[name] for name in self._KEY), [0, 0, 0])
        for index, amount in enumerate((1, charge["micros"], charge["list_micros"])):
            total[index] += amount

    def check(self, kept: Mapping[tuple[str, ...], tuple[int, int, int]]) -> Iterator[Fault]:
        for key in sorted({*kept, *self._sums}):
            found, must = kept.get(key, (0, 0, 0)), tuple(self._sums.get(key, (0, 0, 0)))
            if found != must:
                yield Fault(where=f"charge_sum {' '.join(key)}", what=f"has {found}, must have {must}")
