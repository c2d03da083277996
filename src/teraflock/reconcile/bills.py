"""The billing loop: meter usage, charge it, begin purchases that are due, check budgets, issue invoices.

Every step reads what is wanted and is idempotent, so any number of processes may run it.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, NotFound
from teraflock.bill.budget.rules import LOOK_SECONDS
from teraflock.bill.service import BillService
from teraflock.instance.service import InstanceService
from teraflock.instance.states import Phase, Wanted
from teraflock.meter.service import CHANGES_PER_TURN
from teraflock.storage.database import Database
from teraflock.tenant.model import Actor, KeyId, MemberId, ProjectId
from teraflock.tenant.project.store import project_of_any_organisation

BUDGETS_EVERY: Final = timedelta(seconds=LOOK_SECONDS)
SWEEP_EVERY: Final = timedelta(minutes=5)
COSTS_EVERY: Final = timedelta(seconds=30)
PAGE: Final = 200


class BillLoop:
    def __init__(self, bills: BillService, clock: Clock) -> None:
        self._bills = bills
        self._clock = clock
        self._next: dict[str, datetime] = {}

    def turn(self) -> None:
        bills = self._bills
        taken = bills.meter.turn()
        if self._is_due("sweep", SWEEP_EVERY):
            bills.meter.sweep()
        bills.purchases.turn()
        bills.biller.turn()
        if taken < CHANGES_PER_TURN:  # otherwise a day would be closed before all of it is metered
            bills.biller.close_days()
        if self._is_due("costs", COSTS_EVERY):
            bills.host_costs.turn()
        if self._is_due("budgets", BUDGETS_EVERY):
            bills.budgets.turn()
            bills.invoices.issue_all()

    def _is_due(self, what: str, every: timedelta) -> bool:
        """Check whether it is time. A clock that is set back never delays it by more than `every`."""
        now = self._clock.now()
        due = self._next.get(what)
        if due is not None and now < due <= now + every:
            return False
        self._next[what] = now + every
        return True


def stopper(database: Database, instances: InstanceService) -> Callable[[ProjectId], None]:
    """Return a function that stops a project's running and queued instances as the installation; those away,
    when they are back."""

    def stop(project_id: ProjectId) -> None:
        with database.read() as tx:
            project = project_of_any_organisation(tx, project_id)
        if project is None:
            return
        installation = Actor(
            key_id=KeyId(""), member_id=MemberId(""), member_name="budget", organisation_id=project.organisation_id,
            is_operator=True, roles={},
        )  # fmt: skip
        after = ""
        while views := instances.page(project.id, after=after, limit=PAGE):
            after = views[-1].instance.id
            for view in views:
                if view.instance.wanted == Wanted.RUNNING and view.instance.phase != Phase.FAILED:
                    try:
                        instances.end(installation, project, view.instance.id)
                    except (Conflict, NotFound):
                        continue  # already stopping, or retried in the next turn

    return stop
