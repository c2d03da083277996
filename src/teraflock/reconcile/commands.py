"""The loop that watches programs that instances run by themselves: their command and their user data.

When a command ends, its log and exit code are stored, and the instance is stopped, or deleted if the tenant
asked for that: an idle card costs as much as a busy one. When user data ends, its exit code is stored.
"""

import logging
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from teraflock.base.errors import TeraflockError
from teraflock.fleet import store as fleet
from teraflock.instance import store
from teraflock.instance.across import store as across
from teraflock.instance.driver import CommandState, ComputeDriver, Handle
from teraflock.instance.events import notice_of
from teraflock.instance.machines import handle_of
from teraflock.instance.model import Instance
from teraflock.instance.output import store as outputs
from teraflock.instance.rules import ended, settled
from teraflock.instance.states import Phase
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction
from teraflock.storage.events import record_event

LOG: Final = logging.getLogger("teraflock.reconcile")
LOG_BYTES_MAX: Final = 1 << 20

State = Callable[[ComputeDriver, Handle], CommandState | None]
Keep = Callable[[Transaction, Instance, CommandState], None]


class CommandLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        with self._around.database.read() as tx:
            commands = across.commands_running_in_all_projects(tx)
            scripts = across.user_data_running_in_all_projects(tx)
        for instance in commands:
            self._watch(instance, lambda driver, handle: driver.command_state(handle), self._keep)
        for instance in scripts:
            self._watch(instance, lambda driver, handle: driver.user_data_state(handle), self._keep_user_data)

    def _watch(self, instance: Instance, state: State, keep: Keep) -> None:
        try:
            self._look(instance, state, keep)
        except TeraflockError as error:
            LOG.warning("%s: cannot check its command: %s", instance.id, error.sentence)
        except Exception:
            LOG.exception("%s: checking its command failed", instance.id)

    def _look(self, instance: Instance, state: State, keep: Keep) -> None:
        with self._around.database.read() as tx:
            host = fleet.host(tx, instance.host_id or "")
        if host is None:
            return
        seen = state(self._around.engines.at(instance.site), handle_of(instance, host))
        if seen is not None and seen.exit_code is not None:
            self._around.database.write(lambda tx: keep(tx, instance, seen))
            self._around.wake()

    def _fresh(self, tx: Transaction, seen: Instance) -> Instance | None:
        """Return the instance as it is now, or None if it was restarted in the meantime and this was the end
        of another run."""
        before = across.by_id_in_all_projects(tx, seen.id)
        if before is None or before.phase != Phase.RUNNING or before.generation != seen.generation:
            return None
        return before

    def _keep(self, tx: Transaction, seen: Instance, state: CommandState) -> None:
        before = self._fresh(tx, seen)
        if before is None:
            return
        now = self._around.clock.now()
        outputs.put_output(
            tx, before.id, state.log[-LOG_BYTES_MAX:].decode("utf-8", "replace").replace("\0", "\ufffd")
        )
        after = replace(ended(before, now), exit_code=state.exit_code, due_at=now)
        store.put(tx, before, settled(after), now=now, random_bytes=self._around.random_bytes)

    def _keep_user_data(self, tx: Transaction, seen: Instance, state: CommandState) -> None:
        before = self._fresh(tx, seen)
        if before is None or not before.user_data_waits or state.exit_code is None:
            return
        now, random_bytes = self._around.clock.now(), self._around.random_bytes
        after = replace(before, user_data_waits=False, user_data_exit_code=state.exit_code)
        store.put(tx, before, after, now=now, random_bytes=random_bytes)
        event = notice_of("instance.user_data", before, now, random_bytes, exit_code=state.exit_code)
        record_event(tx, event)
