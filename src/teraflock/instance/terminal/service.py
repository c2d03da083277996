"""Opens terminals and finds them again, in the memory of this process.

Invariants:
- a terminal belongs to the session that opened it, in one project; for everyone else it does not exist;
- every terminal has an audit row. What is typed is not recorded: it may contain passwords;
- a terminal without a reader ends after a minute, so a closed page leaves no shell behind;
- a terminal ends when its instance no longer runs;
- an organisation has a bounded number of terminals, and a terminal a bounded number of readers.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, NotFound, Refused, TeraflockError, TooMany
from teraflock.base.ids import new_id
from teraflock.instance import store
from teraflock.instance.changes import handle_of_view
from teraflock.instance.engines import Engines
from teraflock.instance.lookup import found
from teraflock.instance.model import View
from teraflock.instance.states import BILLABLE, Phase
from teraflock.instance.terminal.model import OpenTerminal, TerminalDriver
from teraflock.storage.database import Database
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import By, ProjectId

TERMINALS_MAX: Final = 256
PER_ORGANISATION_MAX: Final = 32
READERS_MAX: Final = 4
"""Of one terminal. A page has one, and for a moment two when its connection broke."""
UNREAD_FOR_MAX: Final = timedelta(seconds=60)
LOOK_SECONDS: Final = 5.0
OPEN_IN: Final = BILLABLE | {Phase.AWAY}
"""An instance whose host does not answer for a moment may still run."""
COLUMNS_MAX: Final = 1000
INPUT_BYTES_MAX: Final = 256 << 10


class TerminalService(AuditedService):
    def __init__(
        self, database: Database, clock: Clock, engines: Engines, random_bytes: Callable[[int], bytes]
    ) -> None:
        super().__init__(database, clock, random_bytes)
        self._engines = engines
        self._lock = threading.Lock()
        self._open: dict[str, OpenTerminal] = {}
        self._stopping = threading.Event()
        self._looks = False

    def open(self, by: By, ref: str, *, columns: int, rows: int) -> OpenTerminal:
        """Open a shell in a running instance."""
        assert by.project is not None, "a terminal is in a project"
        self._check_room(by.actor.organisation_id)
        view, driver = self._found(by.project.id, ref)
        instance = view.instance
        self._database.write(
            lambda tx: self._audit.note(tx, by, "instance.terminal", instance.id, name=instance.name)
        )
        width, height = _bounded(columns), _bounded(rows)
        now = self._clock.now()
        opened = OpenTerminal(
            new_id("trm", now, self._random_bytes),
            project_id=by.project.id,
            instance_id=instance.id,
            key_id=by.actor.key_id,
            organisation_id=by.actor.organisation_id,
            engine=driver.open_terminal(handle_of_view(view), columns=width, rows=height),
            opened_at=now,
        )
        with self._lock:
            self._open[opened.id] = opened
            if not self._looks:
                self._looks = True
                threading.Thread(target=self._look, name="terminals", daemon=True).start()
        threading.Thread(target=self._pump, args=(opened,), name="terminal", daemon=True).start()
        threading.Thread(target=opened.feed, name="terminal-input", daemon=True).start()
        return opened

    def get(self, by: By, id: str) -> OpenTerminal:
        opened = self._open.get(id)
        project = by.project.id if by.project else ""
        if opened is None or opened.key_id != by.actor.key_id or opened.project_id != project:
            raise NotFound("This terminal is closed", hint="Open a new one")
        return opened

    def get_to_read(self, by: By, id: str) -> OpenTerminal:
        """Like `get`, for one more stream of output."""
        opened = self.get(by, id)
        if opened.readers >= READERS_MAX:
            raise TooMany(
                f"This terminal has {opened.readers} readers; the limit is {READERS_MAX}",
                hint="Close the other pages that show it",
                context={"retry_after_seconds": 5},
            )
        return opened

    def enter(self, terminal: OpenTerminal) -> None:
        with self._lock:
            terminal.readers += 1

    def leave(self, terminal: OpenTerminal) -> None:
        with self._lock:
            terminal.readers -= 1
            terminal.left_at = self._clock.now()

    def close(self) -> None:
        """End all terminals, when the server stops."""
        self._stopping.set()
        for each in tuple(self._open.values()):
            each.end()

    def end_unread(self) -> None:
        """End the terminals that nobody has read for a while."""
        before = self._clock.now() - UNREAD_FOR_MAX
        for each in tuple(self._open.values()):
            if not each.readers and each.left_at <= before:
                each.end()

    def end_stopped(self) -> None:
        """End the terminals of instances that no longer run. The connection to a lost host does not break by itself."""
        opened = tuple(self._open.values())
        with self._database.read() as tx:
            views = [store.find(tx, each.project_id, each.instance_id) for each in opened]
        for each, view in zip(opened, views, strict=True):
            if view is None or view.instance.phase not in OPEN_IN:
                each.end()

    def _found(self, project: ProjectId, ref: str) -> tuple[View, TerminalDriver]:
        with self._database.read() as tx:
            view = found(tx, project, ref)
        instance = view.instance
        if instance.phase != Phase.RUNNING or instance.host_id is None:
            raise Conflict(
                f"`{instance.name}` cannot open a terminal now: it is {instance.phase}",
                hint="Start it, and try again when it is running",
            )
        driver = self._engines.at(instance.site)
        if not isinstance(driver, TerminalDriver):
            raise Refused(
                f"`{instance.name}` cannot open a terminal: its site `{instance.site}` does not support it",
                hint="Use SSH",
            )
        return view, driver

    def _check_room(self, organisation: str) -> None:
        own = sum(each.organisation_id == organisation for each in tuple(self._open.values()))
        if own >= PER_ORGANISATION_MAX or len(self._open) >= TERMINALS_MAX:
            raise TooMany(
                f"Your organisation has {own} open terminals; the limit is {PER_ORGANISATION_MAX}"
                if own >= PER_ORGANISATION_MAX
                else "The server has too many open terminals",
                hint="Close some, or use SSH",
                context={"retry_after_seconds": 30},
            )

    def _pump(self, opened: OpenTerminal) -> None:
        try:
            opened.pump()
        finally:
            with self._lock:  # `get` finds it until the next look, so the last output can still be read
                opened.left_at = self._clock.now()

    def _look(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            self.end_unread()
            with suppress(TeraflockError):  # the database does not answer now
                self.end_stopped()
            with self._lock:
                gone = [id for id, each in self._open.items() if each.ended and not each.readers]
                for id in gone:
                    del self._open[id]
                if not self._open:
                    self._looks = False
                    return


def _bounded(size: int) -> int:
    return min(max(size, 1), COLUMNS_MAX)
