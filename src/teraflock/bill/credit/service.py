"""Grants credits. A credit covers whole days, from the day it is granted to the end of the day it expires."""

from datetime import datetime

from msgspec.structs import replace

from teraflock.base.clock import DAY_US, LATEST
from teraflock.base.errors import BadInput, Unavailable
from teraflock.base.ids import new_id
from teraflock.base.money import amount_text
from teraflock.bill import store
from teraflock.bill.credit import store as credit_store
from teraflock.bill.credit.model import Grant
from teraflock.bill.credit.rules import gift
from teraflock.bill.desk import Desk
from teraflock.bill.ledger import store as ledger_store
from teraflock.bill.price import store as price_store
from teraflock.bill.price.model import FOREVER_US
from teraflock.bill.times import microseconds
from teraflock.storage.database import Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import By, ProjectId


class CreditService(AuditedService):
    def grant(
        self,
        project_id: ProjectId,
        micros: int,
        reason: str,
        expires: datetime | None = None,
        *,
        by: By | None = None,
    ) -> Grant:
        """Grant a project a credit in its currency, starting today."""
        now = self._clock.now()
        now_us = microseconds(now)
        from_us = now_us // DAY_US * DAY_US
        if expires is not None and expires > LATEST:
            raise BadInput(
                f"A credit must expire before {LATEST:%Y}",
                hint="Remove `--expires` for a credit that never expires",
            )
        expires_us = -(-microseconds(expires) // DAY_US) * DAY_US if expires else FOREVER_US
        if micros <= 0:
            raise BadInput("The credit must be greater than 0")
        if expires_us <= now_us:
            raise BadInput(
                "The credit must expire in the future",
                hint="Remove `--expires` for a credit that never expires",
            )

        def work(tx: Transaction) -> Grant:
            made = Grant(
                id=new_id("crd", now, self._random_bytes), project_id=project_id, reason=reason, micros=micros,
                currency=Desk(tx).currency(project_id), from_us=from_us, expires_us=expires_us,
            )  # fmt: skip
            return self._put(tx, made, by)

        return self._database.write(work)

    def open_prepaid(self, tx: Transaction, project_id: ProjectId, micros: int, reason: str) -> None:
        """Let a new project pay in advance, with a credit that never expires. 0: without one."""
        now = self._clock.now()
        book = price_store.book(tx)
        currency = book.currency
        if book.is_empty:
            raise Unavailable(
                "This server has no prices yet", hint="The operator sets them with `tera price set FILE`"
            )
        store.set_profile(tx, store.Profile(project_id=project_id, currency=currency, pays="prepaid"))
        if micros:
            grant = Grant(
                id=new_id("crd", now, self._random_bytes), project_id=project_id, reason=reason, micros=micros,
                currency=currency, from_us=microseconds(now) // DAY_US * DAY_US, expires_us=FOREVER_US,
            )  # fmt: skip
            self._put(tx, grant, None)

    def _put(self, tx: Transaction, made: Grant, by: By | None) -> Grant:
        cursor = store.hold(tx)
        credit_store.put(tx, made)
        now_us = microseconds(self._clock.now())
        ledger_store.add(tx, [gift(made)], first_number=cursor.entries + 1, now_us=now_us)
        store.set_cursor(tx, replace(cursor, entries=cursor.entries + 1))
        amount = amount_text(made.micros, made.currency)
        self._audit.note(tx, by, "credit.give", made.id, amount=amount, reason=made.reason)
        return made

    def grants(self, project_id: ProjectId) -> list[Grant]:
        with self._database.read() as tx:
            return credit_store.grants(tx, project_id)
