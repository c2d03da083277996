"""Values of lessons and certificates."""

from datetime import datetime

import msgspec

from teraflock.tenant.model import MemberId


class PassedLesson(msgspec.Struct, frozen=True, kw_only=True):
    member_id: MemberId
    lesson: str
    passed_at: datetime


class LessonCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that a member passed all lessons. It stays valid when the member leaves."""

    id: str
    """Nobody can guess it. Anyone who knows it can check the certificate."""
    member_id: MemberId
    member_name: str
    organisation_name: str
    """Both names as they were when it was issued."""
    issued_at: datetime
