"""Tells guests that they must leave their cards: a file with the time, until the notice is over or withdrawn.

Programs in the guest can look at the file and save their work. At the end of the notice the guest is shut down, and
every process gets SIGTERM first. A guest that cannot be reached is stopped all the same.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from teraflock.base.errors import TeraflockError
from teraflock.fleet import store as fleet
from teraflock.instance.driver import Capability
from teraflock.instance.machines import handle_of
from teraflock.instance.model import Instance, InstanceId
from teraflock.instance.states import Phase
from teraflock.reconcile.surroundings import Surroundings

LOG: Final = logging.getLogger("teraflock.reconcile")
NOTICE_FILE: Final = "/run/tera-leaving-at"
"""Gone after a restart of the guest."""
SECONDS_MAX: Final = 5.0
TOLD_PER_TURN: Final = 20
TURN_TIME_MAX: Final = timedelta(seconds=5)
"""Guests may answer slowly. The others are told in the next turn: auctions and starts wait meanwhile."""


class BidNotices:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._told: dict[InstanceId, datetime] = {}
        """What this process wrote into which guest. A new process writes it again."""

    def tell(self, instances: Iterable[Instance]) -> None:
        told, clock = 0, self._around.clock
        until = clock.now() + TURN_TIME_MAX
        for each in instances:
            at = each.preemptible.leaving_at if each.preemptible else None
            if each.phase != Phase.RUNNING:
                self._told.pop(each.id, None)
            elif at != self._told.get(each.id) and told < TOLD_PER_TURN and clock.now() < until:
                told += 1
                self._write(each, at)
                self._told.pop(each.id, None)
                if at is not None:
                    self._told[each.id] = at

    def _write(self, instance: Instance, at: datetime | None) -> None:
        if not self._around.engines.can(instance.site, Capability.EXEC):
            return
        with self._around.database.read() as tx:
            handle = handle_of(instance, fleet.host(tx, instance.host_id or ""))
        command = ("rm", "-f", NOTICE_FILE) if at is None else ("tee", NOTICE_FILE)
        text = b"" if at is None else f"{at.isoformat()}\n".encode()
        try:
            driver = self._around.engines.at(instance.site)
            driver.run(handle, command, stdin=text, seconds_max=SECONDS_MAX)
        except TeraflockError as error:
            LOG.info("%s could not be told to leave: %s", instance.id, error.sentence)
