"""Buying, growing, ending and going on: a term, its fee in the books and its event, in one transaction."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, NotFound, Refused
from teraflock.base.events import Event
from teraflock.base.ids import EventId, new_id
from teraflock.base.money import decimal_text
from teraflock.bill import store
from teraflock.bill.budget.admission import BudgetReached, affords
from teraflock.bill.charge.model import Amounts, Charge, Slice, Subject
from teraflock.bill.desk import Desk
from teraflock.bill.price.model import Period, Place
from teraflock.bill.purchase import store as purchase_store
from teraflock.bill.purchase.model import Cover, Mode, Purchase, Term
from teraflock.bill.purchase.rules import bought, ended, next_term, upgraded
from teraflock.bill.times import microseconds, moment
from teraflock.meter import store as meter_store
from teraflock.meter.model import Holding, Meter
from teraflock.meter.rules import OVER
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import record_event

TERMS_PER_TURN: Final = 1_000
RandomBytes = Callable[[int], bytes]


class PurchaseService:
    def __init__(self, database: Database, clock: Clock, random_bytes: RandomBytes) -> None:
        self._database = database
        self._clock = clock
        self._random_bytes = random_bytes

    def buy(
        self,
        project_id: str,
        instance_id: str,
        mode: Mode,
        *,
        years: int = 0,
        upfront: bool = False,
        renews: bool = True,
    ) -> tuple[Purchase, Term]:
        """Pay for what an instance holds, from now on."""

        def work(tx: Transaction) -> tuple[Purchase, Term]:
            now_us = self._now_us(tx)
            meter = _running(tx, project_id, instance_id)
            if purchase_store.standing_of_instance(tx, instance_id):
                raise Conflict("This instance is paid for already", hint="`tera price` shows until when")
            period = _period(Desk(tx), now_us)
            purchase = Purchase(
                id=new_id("pur", moment(now_us), self._random_bytes), project_id=project_id, instance_id=instance_id,
                mode=mode, years=years, upfront=upfront, renews=renews, due_us=0,
            )  # fmt: skip
            held = meter.open.held if meter.open else Holding()
            term = bought(purchase, _cover(held), period, Desk(tx).currency(project_id), _place(held), now_us)
            _check_affords(tx, project_id, term, now_us)
            return self._keep(tx, purchase, term, held, now_us), term

        return self._database.write(work)

    def upgrade(self, project_id: str, purchase_id: str) -> Term:
        """Let a purchase grow to what its instance holds now."""

        def work(tx: Transaction) -> Term:
            now_us = self._now_us(tx)
            purchase, terms = _standing(tx, project_id, purchase_id)
            held = _held(_running(tx, project_id, purchase.instance_id))
            term = upgraded(purchase, terms, _cover(held), _period(Desk(tx), now_us), _place(held), now_us)
            _check_affords(tx, project_id, term, now_us)
            self._keep(tx, purchase, term, held, now_us)
            return term

        return self._database.write(work)

    def end(self, project_id: str, purchase_id: str) -> Term:
        def work(tx: Transaction) -> Term:
            now_us = self._now_us(tx)
            purchase, terms = _standing(tx, project_id, purchase_id)
            return self._end(tx, purchase, terms, now_us)

        return self._database.write(work)

    def set_renewal(self, project_id: str, purchase_id: str, renews: bool) -> Purchase:
        def work(tx: Transaction) -> Purchase:
            purchase, _ = _standing(tx, project_id, purchase_id)
            changed = replace(purchase, renews=renews)
            purchase_store.put(tx, changed)
            return changed

        return self._database.write(work)

    def of_project(self, project_id: str) -> list[tuple[Purchase, list[Term]]]:
        with self._database.read() as tx:
            found = purchase_store.purchases(tx, project_id)
            return [(each, purchase_store.terms(tx, each.id)) for each in found]

    def one(self, project_id: str, purchase_id: str) -> tuple[Purchase, list[Term]]:
        with self._database.read() as tx:
            found = purchase_store.purchase(tx, project_id, purchase_id)
            if found is None:
                raise NotFound(f"No purchase is known by the id `{purchase_id}`")
            return found, purchase_store.terms(tx, purchase_id)

    def turn(self) -> int:
        """Begin the terms that are due; how many they were."""
        now_us = microseconds(self._clock.now())
        with self._database.read() as tx:
            if not purchase_store.due_in_all_projects(tx, now_us, limit=1):
                return 0
        return self._database.write(lambda tx: go_on(tx, now_us, now_us, self._random_bytes))

    def _end(self, tx: Transaction, purchase: Purchase, terms: Sequence[Term], now_us: int) -> Term:
        term = ended(purchase, terms, Desk(tx).book.at(now_us), now_us)
        meter = meter_store.meter(tx, purchase.instance_id)
        self._keep(tx, replace(purchase, ended=True), term, _held(meter) if meter else Holding(), now_us)
        return term

    def _keep(self, tx: Transaction, purchase: Purchase, term: Term, held: Holding, now_us: int) -> Purchase:
        return _kept(tx, purchase, term, held, now_us, self._random_bytes)

    def _now_us(self, tx: Transaction) -> int:
        """Now, but not within time that is charged: a clock may have stepped back. All that is due has begun."""
        now_us = max(microseconds(self._clock.now()), store.hold(tx).latest_us)
        go_on(tx, now_us, now_us, self._random_bytes)
        return now_us


def go_on(tx: Transaction, until_us: int, now_us: int, random_bytes: RandomBytes) -> int:
    """Begin all terms that are due by `until_us`. The biller does so before it charges what lies before that time."""
    store.hold(tx)
    count = 0
    while due := purchase_store.due_in_all_projects(tx, until_us, limit=TERMS_PER_TURN):
        for purchase in due:
            terms = purchase_store.terms(tx, purchase.id)
            meter = meter_store.meter(tx, purchase.instance_id)
            held = _held(meter) if meter else Holding()
            period = Desk(tx).book.at(terms[-1].until_us)
            was_over = meter is None or (meter.phase in OVER and meter.at_us <= terms[-1].until_us)
            is_over = purchase.mode == "monthly" and was_over
            term = next_term(purchase, terms, period, _place(held)) if period and not is_over else None
            if term is not None and not _is_paid(tx, purchase, term, now_us, random_bytes):
                term = None
            if term is None:
                purchase_store.put(tx, replace(purchase, ended=True))
            else:
                _kept(tx, purchase, term, held, now_us, random_bytes)
                count += 1
    return count


def _is_paid(tx: Transaction, purchase: Purchase, term: Term, now_us: int, random_bytes: RandomBytes) -> bool:
    """Whether what is due goes on.

    A month that would pass a hard budget, or is not paid for in advance, is not bought again, and that is told; the
    instalments of a reservation are owed, whatever the budget says.
    """
    if term.kind != "renewed" or affords(tx, purchase.project_id, term.fee_micros, term.from_us, now_us):
        return True
    record_event(
        tx,
        Event(
            id=EventId(new_id("evt", moment(now_us), random_bytes)), at=moment(now_us), kind="budget.unrenewed",
            subject=purchase.project_id, project=purchase.project_id,
            details={
                "purchase": purchase.id, "instance": purchase.instance_id, "fee_micros": term.fee_micros,
                "currency": term.currency,
            },
        ),
    )  # fmt: skip
    return False


def _check_affords(tx: Transaction, project_id: str, term: Term, now_us: int) -> None:
    if not affords(tx, project_id, term.fee_micros, now_us, now_us):
        fee = f"{decimal_text(term.fee_micros, 2)} {term.currency}"
        raise BudgetReached(
            f"The fee of {fee} is more than is left of the budget, or of what was paid in advance",
            hint="Raise the budget with `tera budget set`, or pay in",
        )


def _kept(
    tx: Transaction, purchase: Purchase, term: Term, held: Holding, now_us: int, random_bytes: RandomBytes
) -> Purchase:
    kept = replace(purchase, due_us=term.until_us)
    purchase_store.put(tx, kept)
    purchase_store.add_term(tx, term)
    desk = Desk(tx)
    period = desk.book.at(term.from_us)
    record_event(tx, _event(kept, term, held, period.version if period else 0, now_us, random_bytes))
    cursor = store.cursor(tx)
    cursor = replace(cursor, latest_us=max(cursor.latest_us, term.from_us))
    desk.post([fee(kept, term, held)] if term.fee_micros else [], cursor, now_us)
    return kept


def fee(purchase: Purchase, term: Term, held: Holding) -> Charge:
    kind = "fee" if term.fee_micros > 0 else "refund"
    part = Slice(
        term.from_us,
        term.until_us,
        term.currency,
        Amounts(fee=term.fee_micros),
        term.fee_micros,
        0,
        0,
        0,
        purchase.id,
    )
    c = term.covers
    named = Holding(
        gpu=c.gpu, gpus=c.gpus, vcpus=c.vcpus, ram_bytes=c.ram_bytes, disk_bytes=c.disk_bytes, mode=purchase.mode,
        host=held.host, region=held.region, name=held.name, member=held.member, labels=held.labels,
    )  # fmt: skip
    subject = Subject(
        id=purchase.id, generation=0, sequence=term.sequence, project_id=purchase.project_id, held=named
    )
    return Charge(subject=subject, segment=0, kind=kind, slice=part)


def _event(
    purchase: Purchase, term: Term, held: Holding, version: int, now_us: int, random_bytes: RandomBytes
) -> Event:
    c = term.covers
    return Event(
        id=EventId(new_id("evt", moment(now_us), random_bytes)), at=moment(now_us), kind=f"purchase.{term.kind}",
        subject=purchase.id, project=purchase.project_id,
        details={
            "term": term.sequence, "instance": purchase.instance_id, "mode": purchase.mode, "years": purchase.years,
            "upfront": int(purchase.upfront), "from_us": term.from_us, "until_us": term.until_us, "gpu": c.gpu,
            "gpus": c.gpus, "vcpus": c.vcpus, "ram_bytes": c.ram_bytes, "disk_bytes": c.disk_bytes,
            "currency": term.currency, "fee_micros": term.fee_micros, "host": held.host, "region": held.region,
            "version": version, "name": held.name, "member": held.member, "labels": held.labels,
        },
    )  # fmt: skip


def _running(tx: Transaction, project_id: str, instance_id: str) -> Meter:
    meter = meter_store.meter(tx, instance_id)
    if meter is None or meter.project_id != project_id or meter.phase in OVER:
        raise NotFound(f"No instance `{instance_id}` is there to be paid for")
    if meter.open is None or meter.open.run_us is None:
        raise Refused("Only a running instance can be bought by the month", hint="`tera start` it first")
    return meter


def _standing(tx: Transaction, project_id: str, purchase_id: str) -> tuple[Purchase, list[Term]]:
    purchase = purchase_store.purchase(tx, project_id, purchase_id)
    if purchase is None:
        raise NotFound(f"No purchase is known by the id `{purchase_id}`")
    if purchase.ended:
        raise Conflict("This purchase has ended")
    return purchase, purchase_store.terms(tx, purchase_id)


def _period(desk: Desk, us: int) -> Period:
    period = desk.book.at(us)
    if period is None:
        raise Refused("There are no prices yet", hint="The operator sets them with `tera price set FILE`")
    return period


def _held(meter: Meter) -> Holding:
    return meter.open.held if meter.open else Holding()


def _cover(held: Holding) -> Cover:
    return Cover(
        gpu=held.gpu, gpus=held.gpus, vcpus=held.vcpus, ram_bytes=held.ram_bytes, disk_bytes=held.disk_bytes
    )


def _place(held: Holding) -> Place:
    return Place(held.host, held.region)
