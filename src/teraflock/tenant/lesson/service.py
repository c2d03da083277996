"""Lessons that members passed. The certificate is issued once, with the last lesson."""

from collections.abc import Set
from typing import Final

from teraflock.base.errors import NotFound
from teraflock.storage.database import Transaction
from teraflock.tenant.acts import Acts
from teraflock.tenant.lesson import store
from teraflock.tenant.lesson.model import LessonCertificate, PassedLesson
from teraflock.tenant.model import Actor
from teraflock.tenant.organisation.rules import existing
from teraflock.tenant.organisation.store import organisation

ID_BYTES: Final = 16
_ID_CHARACTERS: Final = 2 * ID_BYTES + len("crt_")


class LessonService(Acts):
    def passed(self, actor: Actor) -> frozenset[str]:
        with self._database.read() as tx:
            return store.lessons_of(tx, actor.member_id)

    def passes(self, actor: Actor, lesson: str, all_lessons: Set[str]) -> frozenset[str]:
        """Record a lesson, and issue the certificate after the last one. Returns all lessons passed so far."""

        def work(tx: Transaction) -> frozenset[str]:
            now = self._clock.now()
            store.put_lesson(tx, PassedLesson(member_id=actor.member_id, lesson=lesson, passed_at=now))
            passed = store.lessons_of(tx, actor.member_id)
            if all_lessons <= passed and store.certificate_of(tx, actor.member_id) is None:
                self._issue(tx, actor)
            return passed

        return self._database.write(work)

    def certificate_of(self, actor: Actor) -> LessonCertificate | None:
        with self._database.read() as tx:
            return store.certificate_of(tx, actor.member_id)

    def certificate(self, id: str) -> LessonCertificate:
        """A certificate by its id, for anyone who has the id."""
        with self._database.read() as tx:
            found = store.certificate(tx, id) if len(id) == _ID_CHARACTERS and id.isascii() else None
        if found is None:
            raise NotFound(
                "There is no such certificate", hint="Check the address: it has 36 characters at the end"
            )
        return found

    def _issue(self, tx: Transaction, actor: Actor) -> None:
        made = LessonCertificate(
            id=f"crt_{self._random_bytes(ID_BYTES).hex()}",
            member_id=actor.member_id,
            member_name=actor.member_name,
            organisation_name=existing(organisation(tx, actor.organisation_id)).name,
            issued_at=self._clock.now(),
        )
        store.put_certificate(tx, made)
        self._audit.record(tx, actor, "certificate.issue", made.id, None)
