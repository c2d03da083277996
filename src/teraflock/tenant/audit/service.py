"""The audit log: who did what. The transaction that makes a change also writes its row. Rows never change."""

from collections.abc import Callable
from os import urandom
from typing import Final

from teraflock.base.clock import Clock
from teraflock.base.ids import new_id
from teraflock.storage.database import Transaction
from teraflock.tenant.audit import store
from teraflock.tenant.model import Actor, AuditRow, By, KeyId, MemberId, OrganisationId, Project
from teraflock.tenant.project.store import project_of_any_organisation

Detail = str | int | float | bool | None


SERVER: Final = "server"
"""The actor of changes that the server makes by itself."""


class Audit:
    """Writes audit rows for every noun. It needs only a clock and random bytes."""

    def __init__(self, clock: Clock, random_bytes: Callable[[int], bytes] = urandom) -> None:
        self._clock = clock
        self._random_bytes = random_bytes

    def record(
        self,
        tx: Transaction,
        actor: Actor,
        action: str,
        subject: str,
        project: Project | None = None,
        /,
        **details: Detail,
    ) -> None:
        """Record an action on something in a project, or in the actor's organisation. `action` is `noun.verb`.

        The row belongs to the affected organisation, also when an operator acts.
        """
        organisation = project.organisation_id if project else actor.organisation_id
        self.record_in(tx, organisation, actor, action, subject, project.id if project else "", **details)

    def record_in(
        self,
        tx: Transaction,
        organisation: OrganisationId,
        actor: Actor,
        action: str,
        subject: str,
        project_id: str,
        /,
        **details: Detail,
    ) -> None:
        now = self._clock.now()
        row = AuditRow(
            id=new_id("aud", now, self._random_bytes),
            at=now,
            organisation_id=organisation,
            project_id=project_id,
            key_id=actor.key_id,
            member_id=actor.member_id,
            action=action,
            subject=subject,
            details=details,
        )
        store.put_audit(tx, row)

    def note(self, tx: Transaction, by: By | None, action: str, subject: str, /, **details: Detail) -> None:
        """Record an action with the actor and the project. None: the server acted by itself, so nothing is recorded."""
        if by is not None:
            where = {"project": by.project.name} if by.project else {}
            self.record(
                tx, by.actor, action, subject, by.project, **where, member=by.actor.member_name, **details
            )

    def note_loop(
        self, tx: Transaction, project_id: str, action: str, subject: str, /, **details: Detail
    ) -> None:
        """Record what the server did by itself in a project, such as a renewal."""
        project = project_of_any_organisation(tx, project_id)
        if project is not None:
            server = Actor(
                key_id=KeyId(""), member_id=MemberId(""), member_name=SERVER, roles={}, is_operator=True,
                organisation_id=project.organisation_id,
            )  # fmt: skip
            self.note(tx, By(actor=server, project=project), action, subject, **details)
