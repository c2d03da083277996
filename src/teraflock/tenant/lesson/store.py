"""All SQL for lessons and certificates. Reads are limited to a member, or to an id that cannot be guessed."""

from typing import Final

from teraflock.storage.database import Transaction
from teraflock.storage.table import Table
from teraflock.tenant.lesson.model import LessonCertificate, PassedLesson
from teraflock.tenant.model import MemberId

_LESSON: Final = Table("lesson_passed", PassedLesson)
_CERTIFICATE: Final = Table("certificate", LessonCertificate)


def lessons_of(tx: Transaction, member: MemberId) -> frozenset[str]:
    rows = tx.all("SELECT lesson FROM lesson_passed WHERE member_id = :member", member=member)
    return frozenset(row[0] for row in rows)


def put_lesson(tx: Transaction, value: PassedLesson) -> None:
    """A lesson that was passed before keeps its time."""
    tx.run_many(f"{_LESSON.insert} ON CONFLICT (member_id, lesson) DO NOTHING", [_LESSON.row(value)])


def certificate_of(tx: Transaction, member: MemberId) -> LessonCertificate | None:
    return _CERTIFICATE.one(tx, "WHERE member_id = :member", member=member)


def certificate(tx: Transaction, id: str) -> LessonCertificate | None:
    """A certificate of any member, by its secret id."""
    return _CERTIFICATE.one(tx, "WHERE id = :id", id=id)


def put_certificate(tx: Transaction, value: LessonCertificate) -> None:
    _CERTIFICATE.add(tx, value)
