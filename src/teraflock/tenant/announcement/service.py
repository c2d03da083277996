"""Announcements: operators write them for all organisations or for one, and members read them.

A tenant sees the announcements for everyone and for its own organisation. An operator sees all of them.
"""

import threading
from datetime import datetime, timedelta
from typing import Final

from teraflock.base.clock import LATEST, Clock
from teraflock.base.errors import BadInput, Conflict, NotFound
from teraflock.base.ids import new_id
from teraflock.storage.database import Database, Transaction
from teraflock.tenant import rules
from teraflock.tenant.acts import Acts
from teraflock.tenant.announcement import store
from teraflock.tenant.model import Actor, Announcement
from teraflock.tenant.organisation.rules import resolve
from teraflock.tenant.rules import Permission

ACTIVE_MAX: Final = 50
"""Nobody reads more at a time."""
TEXT_CHARACTERS_MAX: Final = 1000
LOOK_EVERY: Final = timedelta(seconds=5)
"""How soon a server shows what another process announced."""


class AnnouncementService(Acts):
    def page(self, actor: Actor) -> tuple[Announcement, ...]:
        with self._database.read() as tx:
            found = store.active(tx, self._clock.now(), limit=ACTIVE_MAX)
        return found if actor.is_operator else tuple(each for each in found if _is_for(each, actor))

    def make(
        self, actor: Actor, text: str, *, organisation: str = "", until: datetime | None = None
    ) -> Announcement:
        rules.require(actor, Permission.ORGANISATION_WRITE, None)
        text = text.strip()
        if not 0 < len(text) <= TEXT_CHARACTERS_MAX or not text.isprintable():
            raise BadInput(
                "An announcement must be one line of text",
                hint=f"Write up to {TEXT_CHARACTERS_MAX} characters",
            )
        now = self._clock.now()
        if until is not None and until <= now:
            raise BadInput(
                "The end of the announcement is in the past",
                hint="Give a time in the future, or leave it out",
            )

        if until is not None and until > LATEST:
            raise BadInput(
                f"An announcement must end before {LATEST:%Y}",
                hint="Omit the time to create an announcement that does not end",
            )

        def work(tx: Transaction) -> Announcement:
            if len(store.active(tx, now, limit=ACTIVE_MAX)) == ACTIVE_MAX:
                raise Conflict(f"There are already {ACTIVE_MAX} announcements", hint="Remove some first")
            home = resolve(tx, actor, organisation) if organisation else ""
            made = Announcement(
                id=new_id("ann", now, self._random_bytes),
                text=text,
                organisation_id=home,
                created_at=now,
                until=until,
            )
            store.put_announcement(tx, made, actor.member_id)
            self._audit.record(tx, actor, "announcement.make", made.id, None, text=text, organisation=home)
            return made

        return self._database.write(work)

    def remove(self, actor: Actor, id: str) -> None:
        rules.require(actor, Permission.ORGANISATION_WRITE, None)

        def work(tx: Transaction) -> None:
            if not store.remove(tx, id, self._clock.now()):
                raise NotFound(
                    f"There is no announcement `{id[:80]}`", hint="`tera announce list` lists them"
                )
            self._audit.record(tx, actor, "announcement.remove", id)

        self._database.write(work)


class News:
    """Finds the announcements for an organisation, from memory: every response and every page of the console asks."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._looked_at: datetime | None = None
        self._active: tuple[Announcement, ...] = ()

    def latest(self, actor: Actor) -> str:
        """The id of the announcement, or empty if there is none."""
        return next((each.id for each in self.current(actor)), "")

    def current(self, actor: Actor) -> tuple[Announcement, ...]:
        """Newest first. Operators get none, because they wrote them."""
        now = self._clock.now()
        if self._looked_at is None or not timedelta() <= now - self._looked_at < LOOK_EVERY:
            self._look(now)
        if not self._active or actor.is_operator:
            return ()
        return tuple(each for each in self._active if _is_for(each, actor))

    def forget(self) -> None:
        """Read again at the next request, because something was announced here."""
        self._looked_at = None

    def _look(self, now: datetime) -> None:
        with self._lock, self._database.read() as tx:
            self._active = store.active(tx, now, limit=ACTIVE_MAX)
            self._looked_at = now


def _is_for(announcement: Announcement, actor: Actor) -> bool:
    return announcement.organisation_id in ("", actor.organisation_id)
