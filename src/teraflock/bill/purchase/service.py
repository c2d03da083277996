"""Buys, upgrades, renews and ends: each stores a term, its fee and its event in one transaction."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from teraflock.base.clock import FixedClock
from teraflock.base.errors import Conflict, NotFound, Refused
from teraflock.base.events import Details, Event, RandomBytes, new_event
from teraflock.base.ids import new_id
from teraflock.base.money import amount_text
from teraflock.bill import store
from teraflock.bill.budget.admission import BudgetReached, affords
from teraflock.bill.charge.model import Amounts, Charge, ChargeSlice, Subject
from teraflock.bill.charge.store import month_of
from teraflock.bill.desk import Desk
from teraflock.bill.price.model import Period, PricePlace
from teraflock.bill.purchase import limits
from teraflock.bill.purchase import store as purchase_store
from teraflock.bill.purchase.model import Mode, Preview, Purchase, PurchaseLimit, Term
from teraflock.bill.purchase.rules import bought, ended, next_term, upgraded
from teraflock.bill.times import microseconds, moment
from teraflock.instance.across import store as across
from teraflock.meter import store as meter_store
from teraflock.meter.ahead import ahead
from teraflock.meter.model import Holding, Meter
from teraflock.meter.rules import OVER
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.audit.service import Audit, Detail
from teraflock.tenant.model import By, Member, ProjectId

TERMS_PER_TURN: Final = 1_000


class PurchaseService(AuditedService):
    def buy(
        self,
        project_id: ProjectId,
        instance_id: str,
        mode: Mode,
        *,
        years: int = 0,
        upfront: bool = False,
        renews: bool = True,
        by: By | None = None,
    ) -> tuple[Purchase, Term]:
        """Pay for what an instance holds, from now on."""

        def work(tx: Transaction) -> tuple[Purchase, Term]:
            limits.check_right(tx, by)
            now_us = self._now_us(tx)
            id = new_id("pur", moment(now_us), self._random_bytes)
            purchase = Purchase(
                id=id, project_id=project_id, instance_id=instance_id, mode=mode, years=years, upfront=upfront,
                renews=renews, due_us=0,
            )  # fmt: skip
            term, held = _first_term(tx, purchase, now_us)
            self._check_pays(tx, purchase, term, by, now_us)
            self._note(tx, by, "purchase.buy", purchase, term, held)
            return self._keep(tx, purchase, term, held, now_us), term

        return self._database.write(work)

    def preview(
        self, project_id: ProjectId, instance_id: str, mode: Mode, *, years: int = 0, upfront: bool = False
    ) -> Preview:
        """What `buy` would charge now. Changes nothing."""
        with self._database.read() as tx:
            now_us = max(microseconds(self._clock.now()), store.cursor(tx).latest_us)
            purchase = Purchase(
                id="", project_id=project_id, instance_id=instance_id, mode=mode, years=years, upfront=upfront, due_us=0
            )  # fmt: skip
            term, _ = _first_term(tx, purchase, now_us)
        return Preview(
            currency=term.currency, fee_micros=term.fee_micros, month_micros=term.month_micros,
            committed_micros=limits.committed_micros(purchase, term), from_us=term.from_us, until_us=term.until_us,
        )  # fmt: skip

    def set_limit(
        self, project_id: ProjectId, member: Member, micros: int | None, *, by: By | None = None
    ) -> None:
        """Set how much a member may commit to by purchases in a month. None: as much as the role allows."""

        def work(tx: Transaction) -> None:
            amount = "none"
            if micros is None:
                purchase_store.remove_limit(tx, project_id, member.id)
            else:
                known = purchase_store.limit(tx, project_id, member.id)
                limit = known or PurchaseLimit(project_id=project_id, member_id=member.id, micros=micros)
                purchase_store.put_limit(tx, replace(limit, micros=micros))
                amount = amount_text(micros, Desk(tx).currency(project_id))
            self._audit.note(tx, by, "purchase.limit", member.id, name=member.name, amount=amount)

        self._database.write(work)

    def limits(self, project_id: ProjectId) -> tuple[str, str, tuple[PurchaseLimit, ...]]:
        """The currency, the current month, and the limits of a project's members."""
        with self._database.read() as tx:
            month = month_of(microseconds(self._clock.now()))
            return Desk(tx).currency(project_id), month, purchase_store.limits(tx, project_id)

    def upgrade(self, project_id: ProjectId, purchase_id: str, *, by: By | None = None) -> Term:
        """Upgrade a purchase to what its instance holds now."""

        def work(tx: Transaction) -> Term:
            now_us = self._now_us(tx)
            purchase, terms = _standing(tx, project_id, purchase_id)
            limits.check_right(tx, by)
            held = _held(_running(tx, project_id, purchase.instance_id))
            term = upgraded(purchase, terms, held.size, _period(Desk(tx), now_us), _place(held), now_us)
            self._check_pays(tx, purchase, term, by, now_us)
            self._note(tx, by, "purchase.upgrade", purchase, term, held)
            self._keep(tx, purchase, term, held, now_us)
            return term

        return self._database.write(work)

    def end(self, project_id: ProjectId, purchase_id: str, *, by: By | None = None) -> Term:
        def work(tx: Transaction) -> Term:
            limits.check_right(tx, by)
            limits.check_owner(by, "end purchases")
            now_us = self._now_us(tx)
            purchase, terms = _standing(tx, project_id, purchase_id)
            return self._end(tx, purchase, terms, now_us, by)

        return self._database.write(work)

    def set_renewal(
        self, project_id: ProjectId, purchase_id: str, renews: bool, *, by: By | None = None
    ) -> Purchase:
        def work(tx: Transaction) -> Purchase:
            limits.check_right(tx, by)
            limits.check_owner(by, "change the renewal of purchases")
            purchase, _ = _standing(tx, project_id, purchase_id)
            changed = replace(purchase, renews=renews)
            purchase_store.put(tx, changed)
            name = _name_of(tx, purchase)
            self._audit.note(tx, by, "purchase.renewal", purchase.id, name=name, renews=renews)
            return changed

        return self._database.write(work)

    def of_project(self, project_id: ProjectId) -> list[tuple[Purchase, tuple[Term, ...]]]:
        with self._database.read() as tx:
            found = purchase_store.purchases(tx, project_id)
            return [(each, purchase_store.terms(tx, each.id)) for each in found]

    def instance_names(self, project_id: ProjectId) -> dict[str, str]:
        """Names of the instances that purchases are for, including deleted ones."""
        with self._database.read() as tx:
            return {each.instance_id: _name_of(tx, each) for each in purchase_store.purchases(tx, project_id)}

    def one(self, project_id: ProjectId, purchase_id: str) -> tuple[Purchase, tuple[Term, ...]]:
        with self._database.read() as tx:
            found = purchase_store.purchase(tx, project_id, purchase_id)
            if found is None:
                raise NotFound(f"No purchase has the id `{purchase_id}`")
            return found, purchase_store.terms(tx, purchase_id)

    def turn(self) -> int:
        """Begin the terms that are due. Return how many."""
        now_us = microseconds(self._clock.now())
        with self._database.read() as tx:
            if not purchase_store.due_in_all_projects(tx, now_us, limit=1):
                return 0
        return self._database.write(lambda tx: begin_due_terms(tx, now_us, now_us, self._random_bytes))

    def _end(
        self, tx: Transaction, purchase: Purchase, terms: Sequence[Term], now_us: int, by: By | None
    ) -> Term:
        term = ended(purchase, terms, Desk(tx).book.at(now_us), now_us)
        meter = meter_store.meter(tx, purchase.instance_id)
        held = _held(meter) if meter else Holding()
        self._note(tx, by, "purchase.end", purchase, term, held)
        self._keep(tx, replace(purchase, ended=True), term, held, now_us)
        return term

    def _check_pays(
        self, tx: Transaction, purchase: Purchase, term: Term, by: By | None, now_us: int
    ) -> None:
        """Raise if the budget, the operator's cap, the balance or the buyer's limit does not allow it."""
        _check_affords(tx, purchase.project_id, term, now_us)
        limits.spend(tx, by, limits.committed_micros(purchase, term), term.currency, now_us)

    def _note(
        self, tx: Transaction, by: By | None, action: str, purchase: Purchase, term: Term, held: Holding
    ) -> None:
        self._audit.note(
            tx, by, action, purchase.id, name=held.name or _name_of(tx, purchase), mode=_mode_text(purchase),
            amount=amount_text(term.fee_micros, term.currency), paid_until=f"{moment(term.until_us):%Y-%m-%d %H:%M}",
        )  # fmt: skip

    def _keep(self, tx: Transaction, purchase: Purchase, term: Term, held: Holding, now_us: int) -> Purchase:
        return _kept(tx, purchase, term, held, now_us, self._random_bytes)

    def _now_us(self, tx: Transaction) -> int:
        """Now, but not before the end of charged time: the clock may have been set back. Begins all due terms."""
        now_us = max(microseconds(self._clock.now()), store.hold(tx).latest_us)
        begin_due_terms(tx, now_us, now_us, self._random_bytes)
        return now_us


def begin_due_terms(tx: Transaction, until_us: int, now_us: int, random_bytes: RandomBytes) -> int:
    """Begin all terms that are due by `until_us`. The biller does so before it charges the time before it."""
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
            _note_by_itself(tx, purchase, term, held, now_us, random_bytes)
    return count


def _note_by_itself(
    tx: Transaction,
    purchase: Purchase,
    term: Term | None,
    held: Holding,
    now_us: int,
    random_bytes: RandomBytes,
) -> None:
    """Record the start of a term, or an end, as an act of the server."""
    audit = Audit(FixedClock(moment(now_us)), random_bytes)
    said: dict[str, Detail] = {"name": held.name or _name_of(tx, purchase), "mode": _mode_text(purchase)}
    if term is not None:
        said["amount"] = amount_text(term.fee_micros, term.currency)
        said["paid_until"] = f"{moment(term.until_us):%Y-%m-%d %H:%M}"
    action = {"renewed": "renew", "continued": "continue"}.get(term.kind, "renew") if term else "expire"
    audit.note_loop(tx, purchase.project_id, f"purchase.{action}", purchase.id, **said)


def _first_term(tx: Transaction, purchase: Purchase, now_us: int) -> tuple[Term, Holding]:
    held = _held(_running(tx, purchase.project_id, purchase.instance_id))
    if purchase_store.standing_of_instance(tx, purchase.instance_id):
        raise Conflict("This instance is paid for already", hint="`tera buy list` shows until when")
    desk = Desk(tx)
    currency = desk.currency(purchase.project_id)
    return bought(purchase, held.size, _period(desk, now_us), currency, _place(held), now_us), held


def _name_of(tx: Transaction, purchase: Purchase) -> str:
    return across.name_in_all_projects(tx, purchase.instance_id) or purchase.instance_id


def _mode_text(purchase: Purchase) -> str:
    if not purchase.years:
        return "monthly"
    years = f"{purchase.years} year{'s' if purchase.years > 1 else ''}"
    return f"reserved {years}{', paid upfront' if purchase.upfront else ''}"


def _is_paid(tx: Transaction, purchase: Purchase, term: Term, now_us: int, random_bytes: RandomBytes) -> bool:
    """Whether a due term begins.

    A month that would exceed a hard budget or the prepaid balance is not renewed, and an event says so. Instalments of
    a reservation are always due.
    """
    if term.kind != "renewed" or affords(tx, purchase.project_id, term.fee_micros, term.from_us, now_us):
        return True
    project, now = purchase.project_id, moment(now_us)
    details: Details = {"purchase": purchase.id, "instance": purchase.instance_id}
    details |= {"fee_micros": term.fee_micros, "currency": term.currency}
    record_event(tx, new_event("budget.unrenewed", project, now, random_bytes, details, project=project))
    return False


def _check_affords(tx: Transaction, project_id: ProjectId, term: Term, now_us: int) -> None:
    if not affords(tx, project_id, term.fee_micros, now_us, now_us, soft_too=True):
        raise BudgetReached(
            f"The fee of {amount_text(term.fee_micros, term.currency)} exceeds what is left of the budget, the"
            " operator's cap or the prepaid balance",
            hint="`tera budget` shows what is left. Raise it with `tera budget set`, or pay in",
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
    part = ChargeSlice(
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
    named = Holding(
        size=term.covers, mode=purchase.mode,
        host=held.host, region=held.region, name=held.name, member=held.member, labels=held.labels,
    )  # fmt: skip
    subject = Subject(
        id=purchase.id, generation=0, sequence=term.sequence, project_id=purchase.project_id, held=named
    )
    return Charge(subject=subject, segment=0, kind=kind, slice=part)


def _event(
    purchase: Purchase, term: Term, held: Holding, version: int, now_us: int, random_bytes: RandomBytes
) -> Event:
    details: Details = {
        "term": term.sequence, "instance": purchase.instance_id, "mode": purchase.mode, "years": purchase.years,
        "upfront": int(purchase.upfront), "from_us": term.from_us, "until_us": term.until_us,
        **msgspec.structs.asdict(term.covers),
        "currency": term.currency, "fee_micros": term.fee_micros, "host": held.host, "region": held.region,
        "version": version, "name": held.name, "member": held.member, "labels": held.labels,
    }  # fmt: skip
    kind, project = f"purchase.{term.kind}", purchase.project_id
    return new_event(kind, purchase.id, moment(now_us), random_bytes, details, project=project)


def _running(tx: Transaction, project_id: ProjectId, instance_id: str) -> Meter:
    """From its events, because the meter may not have read them yet."""
    metered = ahead(tx, project_id, store.cursor(tx).intervals)
    opened = {each.instance_id: each for each in metered.open}
    meter = opened.get(instance_id) or meter_store.meter(tx, instance_id)
    if meter is None or meter.project_id != project_id or meter.phase in OVER:
        raise NotFound(f"There is no instance `{instance_id}`")
    if instance_id not in opened or meter.open is None or meter.open.run_us is None:
        raise Refused(
            "Only a running instance can be bought by the month", hint="Start it first with `tera start`"
        )
    return meter


def _standing(tx: Transaction, project_id: ProjectId, purchase_id: str) -> tuple[Purchase, tuple[Term, ...]]:
    purchase = purchase_store.purchase(tx, project_id, purchase_id)
    if purchase is None:
        raise NotFound(f"No purchase has the id `{purchase_id}`")
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


def _place(held: Holding) -> PricePlace:
    return PricePlace(held.host, held.region)
