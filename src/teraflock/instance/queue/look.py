"""What one turn of the queue, or one reader of it, reads from the database."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.fleet import store as fleet
from teraflock.fleet.placement import Policy
from teraflock.fleet.reservation import store as reservations
from teraflock.fleet.room import Room
from teraflock.instance.placing import terms_of
from teraflock.instance.queue import store
from teraflock.instance.queue.model import QueuedLaunch, QueuePlace, QueueTurn, Release, Start, Used, Waiting
from teraflock.instance.queue.rules import RELEASES_MAX, in_order, places, plan_turn
from teraflock.storage.database import Transaction
from teraflock.tenant.project.store import project_of_any_organisation

WAITING_MAX: Final = 1_000
"""How many launches a turn reads, the oldest first."""
UsedBy = Callable[[Transaction, datetime], Used]
"""What each project used lately. The meter provides it: instances do not know about meters."""


class QueueLook:
    def __init__(
        self, tx: Transaction, policy: Policy, used_by: UsedBy, now: datetime, *, skip: Iterable[str] = ()
    ) -> None:
        skipped = frozenset(skip)
        queued = [
            each
            for each in store.waiting_in_all_projects(tx, limit=WAITING_MAX)
            if each.id not in skipped and each.launch is not None
        ]
        self.now = now
        self.kept = reservations.reserved(tx)
        self.ordered: Sequence[Waiting] = ()
        self.rooms: list[Room] = []
        self.empty: list[Room] = []
        self.releases: list[Release] = []
        found = {each.id: _waiting(tx, each) for each in queued}
        self.hopeless = [Start(id, "") for id, waiting in found.items() if waiting is None]
        """Launches that cannot start any more. Starting them records why."""
        if queued:
            self.ordered = in_order(filter(None, found.values()), used_by(tx, now))
            self.rooms = fleet.rooms_to_divide(tx, policy)
            self.empty = fleet.rooms_to_divide(tx, policy, empty=True)
            self.releases = store.releases_in_all_projects(tx, limit=RELEASES_MAX)

    def turn(self) -> QueueTurn:
        return plan_turn(self.ordered, self.rooms, self.empty, self.releases, self.now, self.kept)

    def places(self) -> dict[str, QueuePlace]:
        """The place of each waiting launch, and its expected start."""
        return dict(places(self.ordered, self.rooms, self.releases, self.now))


def _waiting(tx: Transaction, queued: QueuedLaunch) -> Waiting | None:
    """A launch with its terms; None if its project, its host or an instance to keep away from was removed."""
    assert queued.launch is not None, "it waits"
    if project_of_any_organisation(tx, queued.project_id) is None:
        return None
    try:
        return Waiting(queued, terms_of(tx, queued.project_id, queued.launch))
    except TeraflockError:
        return None
