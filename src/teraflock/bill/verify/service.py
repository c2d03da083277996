"""Verifies everything: reads the books once, in bounded memory except for purchases and sums."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final

import msgspec

from teraflock.bill.price import store as price_store
from teraflock.bill.verify import store
from teraflock.bill.verify.amounts import Bought, Tariffs
from teraflock.bill.verify.bids import Auctions
from teraflock.bill.verify.check import Fault, Known, check_instance, check_purchase
from teraflock.bill.verify.costs import check_host, check_rates, check_uses, rate_of
from teraflock.bill.verify.entries import Months, Sums, check_balance, check_charge_entries, check_grant
from teraflock.bill.verify.invoices import check_invoice, check_invoice_entries
from teraflock.bill.verify.row import Named
from teraflock.bill.verify.terms import expected_terms, paid_for
from teraflock.bill.verify.traffic import check_traffic
from teraflock.bill.verify.watch import HostGaps, check_watched
from teraflock.storage.database import Database, Transaction

FAULTS_MAX: Final = 1_000  # reported; the rest is only counted
_NUMBERED: Final = {
    "meter_interval": "intervals",
    "meter_reading": "readings",
    "charge": "charges",
    "ledger": "entries",
    "host_cost": "host_costs",
    "cost": "cost_lines",
}

_BY_HOST: Final = {
    "host_use": "host_id, from_us, instance_id",
    "host_use_open": "host_id, instance_id",
}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    instances: int
    charges: int
    entries: int
    changes_to_come: int
    """Recorded, but not metered yet."""
    faults: tuple[Fault, ...]
    faults_beyond: int = 0

    @property
    def is_sound(self) -> bool:
        return not self.faults


def verify(database: Database) -> Verdict:
    """Compute everything again from the events, over one snapshot of the database."""
    with database.read() as tx:
        return _Proof(tx).verdict()


class _Proof:
    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._cursors = store.cursors(tx)
        self._taken = store.taken(tx)
        self._sums = Sums()
        self._months = Months()
        self._rates: Counter[tuple[Any, ...]] = Counter()
        self._instances = self._charges = self._to_come = 0
        self._seen: set[str] = set()
        self._book = price_store.book(tx)
        self._purchases = _grouped(store.events(tx, "purchase"), "subject")
        self._terms = {id: expected_terms(events, self._book) for id, events in self._purchases.items()}
        self._grants = {grant["id"]: grant for grant in store.rows(tx, "credit_grant")}
        self._auctions = Auctions(store.rows(tx, "auction"), self._book)
        self._watch = HostGaps(store.rows(tx, "site_watch"), store.sites(tx))
        self._known = Known(
            tariffs=Tariffs(self._book),
            currencies=store.currencies(tx),
            bought=self._bought(),
            booked_until_us=self._cursors["booked_until_us"],
            intervals_charged=self._cursors["intervals_charged"],
        )

    def verdict(self) -> Verdict:
        faults: list[Fault] = []
        beyond = 0
        for fault in self._faults():
            if len(faults) < FAULTS_MAX:
                faults.append(fault)
            else:
                beyond += 1
        return Verdict(
            instances=self._instances, charges=self._charges, entries=self._sums.entries,
            changes_to_come=self._to_come, faults=tuple(faults), faults_beyond=beyond,
        )  # fmt: skip

    def _bought(self) -> dict[str, list[Bought]]:
        by_instance: dict[str, list[Bought]] = {}
        for id, terms in self._terms.items():
            by_instance.setdefault(terms[0]["instance_id"], []).extend(paid_for(id, terms))
        return by_instance

    def _faults(self) -> Iterator[Fault]:
        yield from self._numbers()
        yield from self._auctions.faults
        term_rows = _grouped(store.rows(self._tx, "purchase_term"), "purchase_id")
        streams = {
            "event": _Groups(
                store.events(self._tx, "instance", "image", "address", "balancer", "dataset", "volume"),
                "subject",
            ),
            "interval": _Groups(store.rows(self._tx, "meter_interval"), "instance_id"),
            "ran": _Groups(store.rows(self._tx, "ran_unwatched"), "instance_id"),
            "reading": _Groups(store.rows(self._tx, "meter_reading"), "instance_id"),
            "charge": _Groups(store.rows(self._tx, "charge"), "subject"),
            "entry": _Groups(store.rows(self._tx, "ledger"), "subject"),
            "use": _Groups(store.rows(self._tx, "host_use"), "instance_id"),
            "open": _Groups(store.rows(self._tx, "host_use_open"), "instance_id"),
        }
        for subject, rows in _together(streams):
            yield from self._subject(subject, rows, term_rows.pop(subject, []))
        for id in self._purchases.keys() - self._seen:
            yield from check_purchase(id, self._purchases[id], self._terms[id], term_rows.pop(id, []), [])
        for id in term_rows:
            yield Fault(where=f"purchase_term {id}", what="no event explains it")
        for grant in self._grants.values():
            yield from check_grant(grant, [])
        yield from self._invoices()
        yield from self._costs()
        yield from self._months.check(store.charge_sums(self._tx))
        yield from self._sums.check(store.accounts(self._tx), store.trial_balance(self._tx))

    def _subject(self, subject: str, rows: dict[str, list[Named]], terms: list[Named]) -> Iterator[Fault]:
        for entry in rows["entry"]:
            self._sums.add(entry)
        self._charges += len(rows["charge"])
        for charge in rows["charge"]:
            self._months.add(charge)
        if subject in self._grants:
            yield from check_grant(self._grants.pop(subject), rows["entry"])
        elif subject.startswith("balance/"):
            project_id = subject.removeprefix("balance/")
            yield from check_balance(project_id, self._known.currency(project_id), rows["entry"])
        elif subject.startswith("invoice/"):
            yield from check_invoice_entries(self._invoice(subject), rows["entry"])
        elif subject in self._terms:
            self._seen.add(subject)
            events, expected = self._purchases[subject], self._terms[subject]
            yield from check_purchase(subject, events, expected, terms, rows["charge"])
            yield from check_charge_entries(rows["charge"], rows["entry"])
        else:
            self._instances += 1
            taken = self._taken.get(subject, 0)
            made = {said["sequence"] for said in rows["event"] if "sequence" in said}
            self._to_come += sum(sequence > taken for sequence in made)
            held = [row for row in rows["charge"] if row["sequence"] >= 0]
            sent = [row for row in rows["charge"] if row["sequence"] < 0]
            yield from check_instance(subject, rows["event"], taken, rows["interval"], held, self._known)
            yield from self._auctions.check(subject, rows["event"])
            yield from check_watched(subject, rows["event"], rows["ran"], self._watch)
            yield from check_traffic(subject, rows["event"], rows["reading"], sent, self._known)
            yield from check_charge_entries(rows["charge"], rows["entry"])
            yield from self._subject_costs(subject, rows)

    def _subject_costs(self, subject: str, rows: dict[str, list[Named]]) -> Iterator[Fault]:
        """Verifies the uses of one instance. What its rented host cost is kept for later."""
        project_id = next((said["project_id"] for said in rows["event"] if said["project_id"]), "")
        for said in rows["event"]:
            if said["kind"] == "instance.cost":
                self._rates[rate_of(said, project_id)] += 1
        yield from check_uses(subject, rows["event"], rows["use"], rows["open"])

    def _costs(self) -> Iterator[Fault]:
        for said in store.events(self._tx, "host"):
            if said["kind"] == "host.cost":
                self._rates[rate_of(said, "")] += 1
        yield from check_rates(store.rows(self._tx, "host_cost"), self._rates)
        tables = {"rate": "host_cost", "size": "host_size", "line": "cost", "booked": "cost_host"}
        tables |= {"use": "host_use", "open": "host_use_open"}
        by_host = {
            name: _Groups(store.rows(self._tx, table, _BY_HOST.get(table, "")), "host_id")
            for name, table in tables.items()
        }
        for host_id, rows in _together(by_host):
            rows["use"] += [{**row, "until_us": None} for row in rows.pop("open")]
            yield from check_host(host_id, rows)

    def _numbers(self) -> Iterator[Fault]:
        """No row is missing: numbers have no gap and end where the cursors say."""
        for table, said in _NUMBERED.items():
            count, lowest, highest = store.numbers(self._tx, table)
            if not (count == highest == self._cursors[said] and lowest == 1):
                what = (
                    f"{count} rows numbered {lowest} to {highest}, but the cursor says {self._cursors[said]}"
                )
                yield Fault(where=table, what=what)
        if self._cursors["intervals_charged"] > self._cursors["intervals"]:
            yield Fault(where="bill_cursor", what="more intervals were charged than exist")

    def _invoice(self, subject: str) -> Named | None:
        invoices = store.rows(self._tx, "invoice")
        return next((row for row in invoices if f"invoice/{row['number']}" == subject), None)

    def _invoices(self) -> Iterator[Fault]:
        previous: dict[str, Named] = {}
        for count, row in enumerate(store.rows(self._tx, "invoice"), start=1):
            if row["number"] != count:
                yield Fault(where=f"invoice {row['number']}", what="numbers have a gap")
            yield from check_invoice(self._tx, row, previous.get(row["project_id"]))
            previous[row["project_id"]] = row


def _together(streams: "dict[str, _Groups]") -> Iterator[tuple[str, dict[str, list[Named]]]]:
    """The rows of several streams for each key, in order."""
    while (key := min((s.key for s in streams.values() if s.key is not None), default=None)) is not None:
        yield key, {name: stream.take(key) for name, stream in streams.items()}


class _Groups:
    """A stream in the order of a key, read group by group."""

    def __init__(self, rows: Iterable[Named], key: str) -> None:
        by: Callable[[Named], str] = lambda row: row[key]  # noqa: E731
        self._groups = groupby(rows, by)
        self.key: str | None = None
        self._rows: list[Named] = []
        self._advance()

    def take(self, key: str) -> list[Named]:
        """The rows of this key, if it is the next one."""
        if self.key != key:
            return []
        rows = self._rows
        self._advance()
        return rows

    def _advance(self) -> None:
        self.key, rows = next(self._groups, (None, iter(())))
        self._rows = list(rows)


def _grouped(rows: Iterable[Named], key: str) -> dict[str, list[Named]]:
    grouped: dict[str, list[Named]] = {}
    for row in rows:
        grouped.setdefault(row[key], []).append(row)
    return grouped
