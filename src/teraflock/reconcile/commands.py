"""The loop that watches instances with one command: when it ends, its log and exit code are kept, and it stops.

A card that waits for nobody costs as much as one that computes.
"""

import logging
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import TeraflockError
from teraflock.fleet import store as fleet
from teraflock.instance import store
from teraflock.instance.driver import CommandState, Handle
from teraflock.instance.model import Instance
from teraflock.instance.rules import settled
from teraflock.instance.states import Phase, Wanted
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")
LOG_BYTES_MAX: Final = 1 << 20


class CommandLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        with self._around.database.read() as tx:
            running = store.commands_running_in_all_projects(tx)
        for instance in running:
            try:
                self._look(instance)
            except TeraflockError as error:
                LOG.warning("%s: its command cannot be looked at: %s", instance.id, error.sentence)
            except Exception:
                LOG.exception("%s: looking at its command failed", instance.id)

    def _look(self, instance: Instance) -> None:
        with self._around.database.read() as tx:
            host = fleet.host(tx, instance.host_id or "")
        if host is None:
            return
        state = self._around.engines.at(host.site).command_state(Handle(instance.id, host.name))
        if state is not None and state.exit_code is not None:
            self._around.database.write(lambda tx: self._keep(tx, instance, state))
            self._around.wake()

    def _keep(self, tx: Transaction, seen: Instance, state: CommandState) -> None:
        before = store.by_id_in_all_projects(tx, seen.id)
        if before is None or before.phase != Phase.RUNNING or before.generation != seen.generation:
            return  # started anew meanwhile: this was another run's end
        now = self._around.clock.now()
        store.put_output(
            tx, before.id, state.log[-LOG_BYTES_MAX:].decode("utf-8", "replace").replace("\0", "\ufffd")
        )
        wanted = before.wanted if before.wanted == Wanted.GONE else Wanted.STOPPED
        after = replace(before, exit_code=state.exit_code, wanted=wanted, wanted_at=now, due_at=now)
        store.put(tx, before, settled(after), now=now, random_bytes=self._around.random_bytes)
