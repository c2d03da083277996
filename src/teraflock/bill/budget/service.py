"""Watches budgets and prepaid balances: load, decide, send notices and stop."""

from collections.abc import Callable
from typing import Final

import msgspec

from teraflock.base.clock import Clock
from teraflock.base.errors import BadInput
from teraflock.base.events import Details, new_event
from teraflock.base.money import amount_text
from teraflock.bill import store
from teraflock.bill.budget import store as budget_store
from teraflock.bill.budget.model import Budget, Cap, Decision, Purse, Standing, Told
from teraflock.bill.budget.purse import ahead_budget, ahead_purse, budget_purse
from teraflock.bill.budget.rules import decide, ruling, watched
from teraflock.bill.charge.store import month_of
from teraflock.bill.desk import Desk
from teraflock.bill.times import microseconds, month_bounds
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import By, ProjectId

LEVELS_MAX: Final = 20
_WORDS: Final = {"level": "reached", "announced": "ending", "stopped": "stopped"}


class BudgetLook(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    budget: Budget
    is_ahead: bool = False
    """A prepaid balance, not a budget."""
    purse: Purse
    told: Told
    decision: Decision

    @property
    def notices(self) -> list[tuple[str, int]]:
        """The notice to send, and its level."""
        made = [("level", level) for level in self.decision.levels]
        made += [("announced", int(self.is_ahead))] if self.decision.announces else []
        newly = self.decision.stops and self.told.stopped_us is None
        return made + ([("stopped", int(self.is_ahead))] if newly else [])


class BudgetService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        stop: Callable[[ProjectId], None] = lambda project_id: None,
    ) -> None:
        """`stop` asks all running instances of a project to stop."""
        super().__init__(database, clock, random_bytes)
        self._stop = stop

    def set(self, budget: Budget, *, by: By | None = None) -> Standing:
        """Set a budget, whatever is spent already. If the end is near, it is announced at once."""
        if (
            budget.micros < 0
            or len(budget.levels) > LEVELS_MAX
            or not all(0 < each <= 1000 for each in budget.levels)
        ):
            raise BadInput("A budget needs an amount above zero and levels from 1 to 1000 percent")
        now_us = microseconds(self._clock.now())

        def work(tx: Transaction) -> Standing:
            desk = Desk(tx)
            kept = msgspec.structs.replace(budget, currency=desk.currency(budget.project_id))
            budget_store.put(tx, kept)
            budget_store.forget(tx, budget.project_id, month_of(now_us))
            self._audit.note(
                tx, by, "budget.set", budget.project_id, amount=amount_text(kept.micros, kept.currency),
                hard_stop=kept.hard_stop,
            )  # fmt: skip
            return self._told_standing(tx, desk, budget.project_id, now_us)

        return self._database.write(work)

    def set_cap(self, cap: Cap, *, by: By | None = None) -> Standing:
        """Set the operator's limit for a project's month. The tenant's budget stays as it is."""
        now_us = microseconds(self._clock.now())

        def work(tx: Transaction) -> Standing:
            desk = Desk(tx)
            kept = msgspec.structs.replace(cap, currency=desk.currency(cap.project_id))
            budget_store.put_cap(tx, kept)
            budget_store.forget(tx, cap.project_id, month_of(now_us))
            amount = amount_text(kept.micros, kept.currency)
            self._audit.note(tx, by, "budget.cap", cap.project_id, amount=amount)
            return self._told_standing(tx, desk, cap.project_id, now_us)

        return self._database.write(work)

    def remove_cap(self, project_id: ProjectId, *, by: By | None = None) -> bool:
        def work(tx: Transaction) -> bool:
            self._audit.note(tx, by, "budget.uncap", project_id)
            return budget_store.remove_cap(tx, project_id)

        return self._database.write(work)

    def _told_standing(self, tx: Transaction, desk: Desk, project_id: ProjectId, now_us: int) -> Standing:
        """The budget of a project, after everything that is near was announced."""
        own, cap = budget_store.budget(tx, project_id), budget_store.cap(tx, project_id)
        for each in watched(own, cap):
            self._tell(tx, _look(tx, desk, each, now_us), now_us)
        rules = ruling(own, cap)
        assert rules is not None, "one of them was just set"
        return _standing(_look(tx, desk, rules, now_us), now_us, own, cap)

    def remove(self, project_id: ProjectId, *, by: By | None = None) -> bool:
        def work(tx: Transaction) -> bool:
            self._audit.note(tx, by, "budget.remove", project_id)
            return budget_store.remove(tx, project_id)

        return self._database.write(work)

    def standing(self, project_id: ProjectId) -> Standing | None:
        now_us = microseconds(self._clock.now())
        with self._database.read() as tx:
            own, cap = budget_store.budget(tx, project_id), budget_store.cap(tx, project_id)
            rules = ruling(own, cap)
            return _standing(_look(tx, Desk(tx), rules, now_us), now_us, own, cap) if rules else None

    def turn(self) -> list[ProjectId]:
        """Check every budget once. Return the projects that were stopped."""
        now_us = microseconds(self._clock.now())
        with self._database.read() as tx:
            desk = Desk(tx)
            own = {each.project_id: each for each in budget_store.budgets_in_all_projects(tx)}
            caps = {each.project_id: each for each in budget_store.caps_in_all_projects(tx)}
            looks = [
                _look(tx, desk, each, now_us)
                for id in sorted(own.keys() | caps.keys())
                for each in watched(own.get(id), caps.get(id))
            ]
            looks += [
                _look_ahead(tx, desk, each, now_us)
                for each in desk.profiles.values()
                if each.pays == "prepaid"
            ]
        for look in looks:
            if look.notices:
                self._database.write(lambda tx, look=look: self._tell(tx, look, now_us))  # type: ignore[misc]
        stopped = sorted({look.budget.project_id for look in looks if look.decision.stops})
        for project_id in stopped:
            self._stop(project_id)
        return stopped

    def _tell(self, tx: Transaction, look: BudgetLook, now_us: int) -> None:
        """Checked in the transaction that stores the notice. A budget that changed in between is checked again."""
        project_id, purse = look.budget.project_id, look.purse
        if not look.is_ahead:
            now = watched(budget_store.budget(tx, project_id), budget_store.cap(tx, project_id))
            if look.budget not in now:
                return
        for kind, level in look.notices:
            spent, limit = purse.spent_micros, purse.limit_micros
            budget_store.note(tx, project_id, month_of(now_us), kind, level, now_us, spent, limit)
            word, at = f"budget.{_WORDS[kind]}", self._clock.now()
            details: Details = {
                "level": level if kind == "level" else 0, "paid_ahead": look.is_ahead, "spent_micros": spent,
                "limit_micros": limit, "currency": look.budget.currency,
                "stop_at_us": look.decision.stop_at_us, "micros_per_hour": purse.micros_per_hour,
            }  # fmt: skip
            record_event(tx, new_event(word, project_id, at, self._random_bytes, details, project=project_id))


def _look(tx: Transaction, desk: Desk, budget: Budget, now_us: int) -> BudgetLook:
    purse = budget_purse(tx, desk, budget, now_us)
    told = budget_store.told(tx, budget.project_id, month_of(now_us), ahead=False)
    return BudgetLook(
        budget=budget, purse=purse, told=told, decision=decide(budget, purse, told, now_us=now_us)
    )


def _look_ahead(tx: Transaction, desk: Desk, profile: store.Profile, now_us: int) -> BudgetLook:
    purse = ahead_purse(tx, desk, profile, now_us)
    budget = ahead_budget(profile, purse)
    told = budget_store.told(tx, profile.project_id, month_of(now_us), ahead=True)
    decision = decide(budget, purse, told, now_us=now_us)
    return BudgetLook(budget=budget, is_ahead=True, purse=purse, told=told, decision=decision)


def _standing(look: BudgetLook, now_us: int, own: Budget | None, cap: Cap | None) -> Standing:
    stop_at_us = look.decision.stop_at_us
    is_near = stop_at_us is not None and stop_at_us < month_bounds(month_of(now_us))[1]
    return Standing(
        budget=look.budget,
        cap_micros=cap.micros if cap else None,
        own_micros=own.micros if own else None,
        month=month_of(now_us),
        spent_micros=look.purse.spent_micros,
        micros_per_hour=look.purse.micros_per_hour,
        levels_reached=tuple(sorted(look.told.levels)),
        stop_at_us=stop_at_us if is_near else None,
        announced_us=look.told.announced_us,
        stopped_us=look.told.stopped_us,
    )
