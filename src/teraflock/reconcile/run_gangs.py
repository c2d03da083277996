"""What a run with several nodes does when one is lost: the others are kept, and the command starts again on all.

Lost nodes are replaced at once or not at all: a gang that waited for a place would hold the cards of its other nodes,
and two such gangs could wait for each other. Without room, all nodes end and the whole gang is queued.
"""

import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import Refused, TeraflockError
from teraflock.instance.model import Instance
from teraflock.instance.states import Wanted
from teraflock.reconcile.run_owner import owner_of
from teraflock.reconcile.run_pulls import RunPulls
from teraflock.reconcile.run_starts import Put, RunServices, RunStarts, held
from teraflock.reconcile.surroundings import Surroundings
from teraflock.run import nodes, rules
from teraflock.run.guest import RunGuest
from teraflock.run.model import Run
from teraflock.storage.database import Transaction

NOT_SET_UP: Final = "There is no image of its setup"


class RunGangs:
    def __init__(
        self,
        around: Surroundings,
        services: RunServices,
        starts: RunStarts,
        pulls: RunPulls,
        guest_of: Callable[[Instance], RunGuest],
    ) -> None:
        self._around = around
        self._services = services
        self._starts = starts
        self._pulls = pulls
        self._guest_of = guest_of

    def replaced(self, run: Run, put: Put, found: Sequence[Instance | None]) -> Run | None:
        """Launch a new instance for each lost node, and begin the next attempt. None: all nodes have to end."""
        now = self._around.clock.now()
        kept = nodes.survivors(run, found, now)
        if not kept or not nodes.may_restart(run):
            return None
        guests = {number: self._guest_of(each) for number, each in kept.items()}
        try:
            self.stop(run, guests)
            mode = next(iter(kept.values())).spec.mode
            after = self._around.database.write_with_locks(
                partial(self._launch, run, put, found, frozenset(kept), mode=mode)
            )
        except TeraflockError:
            return None
        self._around.wake()
        return after

    def stop(self, run: Run, guests: dict[int, RunGuest]) -> None:
        """End the command, so that nothing of it disturbs the next attempt, and copy what node 0 has saved."""
        for guest in guests.values():
            guest.signal(run.key, signal.SIGKILL)
        if 0 in guests:
            self._pulls.checkpoints(run, guests[0])

    def _launch(
        self,
        run: Run,
        put: Put,
        found: Sequence[Instance | None],
        kept: frozenset[int],
        tx: Transaction,
        *,
        mode: str,
    ) -> Run:
        actor, project = owner_of(tx, run)
        service = self._services.instances_in(tx)
        next_attempt = rules.again(run)
        order = self._starts.order(tx, run, mode=mode, name=rules.order_names(next_attempt)[0])
        if rules.has_setup(run.spec) and order.image == run.spec.image:
            raise Refused(NOT_SET_UP)
        lost = [number for number in range(run.spec.nodes) if number not in kept]
        made, _ = service.launch_or_queue(actor, project, replace(order, instances=len(lost)))
        for each in (found[number] for number in lost):
            if each is not None and each.wanted != Wanted.GONE:
                service.delete(actor, project, each.id)
        new = dict(zip(lost, (each.id for each in made), strict=True))
        return held(put(run, nodes.with_replaced(run, new, self._around.clock.now()), tx))
