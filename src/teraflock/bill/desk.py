"""What the biller reads once per turn, and the only code that adds charges to the books."""

from collections.abc import Iterable, Sequence, Set
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import DAY_US
from teraflock.bill import store
from teraflock.bill.charge import store as charge_store
from teraflock.bill.charge.model import Charge, Covered
from teraflock.bill.charge.rules import Tariff, booking, slices, standing, subject_of
from teraflock.bill.credit import store as credit_store
from teraflock.bill.credit.rules import Due, pay
from teraflock.bill.ledger import store as ledger_store
from teraflock.bill.ledger.model import LedgerEntry, paid_ahead
from teraflock.bill.ledger.rules import entry_of
from teraflock.bill.price import store as price_store
from teraflock.bill.price.model import FOREVER_US, PriceBook
from teraflock.bill.purchase import store as purchase_store
from teraflock.bill.purchase.model import Term
from teraflock.bill.purchase.rules import covered
from teraflock.meter.model import Interval, Meter
from teraflock.storage.database import Transaction
from teraflock.tenant.model import ProjectId

FROM_ANY_DAY_US: Final = FOREVER_US
"""Days before this time may be booked already, even if the interval began later."""


class Desk:
    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.book: PriceBook = price_store.book(tx)
        self.profiles = store.profiles(tx)
        self._tariffs: dict[str, Tariff] = {}
        self._covers = _covers(purchase_store.terms_in_all_projects(tx))

    def currency(self, project_id: ProjectId) -> str:
        profile = self.profiles.get(project_id)
        return profile.currency if profile else self.book.currency

    def tariff(self, project_id: ProjectId) -> Tariff:
        currency = self.currency(project_id)
        if currency not in self._tariffs:
            self._tariffs[currency] = Tariff(self.book, currency)
        return self._tariffs[currency]

    def covers(self, instance_id: str) -> Sequence[Covered]:
        return self._covers.get(instance_id, ())

    def booking(self, interval: Interval, until_us: int, booked_until_us: int) -> list[Charge]:
        """The charges that are missing up to `until_us`."""
        due = slices(interval, until_us, self.tariff(interval.project_id), self.covers(interval.instance_id))
        subject = subject_of(interval)
        if interval.revision == 0 and interval.from_us >= booked_until_us:
            return booking(subject, (), due, 0)  # nothing was booked while it was open
        made = charge_store.charges_of(self._tx, interval.instance_id, interval.sequence)
        return booking(subject, standing(made), due, len(made))

    def post(
        self,
        charges: Sequence[Charge],
        cursor: store.BillCursor,
        now_us: int,
        more: Iterable[LedgerEntry] = (),
    ) -> store.BillCursor:
        """Store charges with their ledger entries and payments, and move the biller's cursor."""
        entries = [entry for entry in map(entry_of, charges) if entry is not None]
        entries += more
        entries += self._payments(charges, cursor.entries + len(entries) + 1)
        charge_store.add(self._tx, charges, first_number=cursor.charges + 1, now_us=now_us)
        ledger_store.add(self._tx, entries, first_number=cursor.entries + 1, now_us=now_us)
        latest_us = max((_priced_until(charge) for charge in charges), default=0)
        after = replace(
            cursor,
            charges=cursor.charges + len(charges),
            entries=cursor.entries + len(entries),
            latest_us=max(cursor.latest_us, cursor.booked_until_us, latest_us),
        )
        store.set_cursor(self._tx, after)
        return after

    def _payments(self, charges: Sequence[Charge], number: int) -> list[LedgerEntry]:
        """What credits and balances pay of these charges."""
        paying = credit_store.projects_with_grants(self._tx)
        paying |= {profile.project_id for profile in self.profiles.values() if profile.pays == "prepaid"}
        entries: list[LedgerEntry] = []
        if paying:
            for project_id, dues in sorted(dues_by_project(charges, paying).items()):
                entries += self.pay(project_id, dues, number + len(entries))
        return entries

    def pay(self, project_id: ProjectId, dues: Sequence[Due], number: int) -> list[LedgerEntry]:
        currency, profile = self.currency(project_id), self.profiles.get(project_id)
        balance = None
        if profile and profile.pays == "prepaid":
            balance = -ledger_store.account(self._tx, paid_ahead(project_id), currency).owed
        paid = pay(project_id, currency, dues, credit_store.grants(self._tx, project_id), balance, number)
        for grant in paid.grants:
            credit_store.put(self._tx, grant)
        return paid.entries


def _priced_until(charge: Charge) -> int:
    """When the price of a charge was fixed. A fee is paid on its first day for a time to come."""
    return charge.slice.from_us if charge.kind == "fee" else charge.slice.until_us


def dues_by_project(charges: Iterable[Charge], projects: Set[ProjectId]) -> dict[ProjectId, list[Due]]:
    """What each project owes for each day of these charges, net."""
    by_day: dict[tuple[ProjectId, int], int] = {}
    for charge in charges:
        if charge.subject.project_id in projects and charge.micros:
            key = (charge.subject.project_id, charge.slice.from_us // DAY_US * DAY_US)
            by_day[key] = by_day.get(key, 0) + charge.micros
    dues: dict[ProjectId, list[Due]] = {}
    for (project_id, day_us), micros in by_day.items():
        dues.setdefault(project_id, []).append(Due(day_us, charge_store.month_of(day_us), micros))
    return dues


def interval_of(meter: Meter) -> Interval:
    """An open meter as an interval without an end."""
    now = meter.open
    assert now is not None
    return Interval(
        instance_id=meter.instance_id, sequence=now.sequence, generation=now.generation, project_id=meter.project_id,
        from_us=now.from_us, until_us=FOREVER_US, run_us=now.run_us, held=now.held,
    )  # fmt: skip


def _covers(terms: Iterable[Term]) -> dict[str, list[Covered]]:
    by_instance: dict[str, list[Term]] = {}
    for term in terms:
        by_instance.setdefault(term.instance_id, []).append(term)
    return {instance_id: covered(own) for instance_id, own in by_instance.items()}
