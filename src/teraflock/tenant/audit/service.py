"""The audit log: who did what, in a row written by the transaction that did it. Rows are never changed."""

from collections.abc import Callable
from os import urandom

from teraflock.base.clock import Clock
from teraflock.base.ids import new_id
from teraflock.storage.database import Transaction
from teraflock.tenant.audit import store
from teraflock.tenant.model import Actor, AuditRow, OrganisationId, Project


class Audit:
    """For every noun whose acts are put on record: none needs more than a clock to make one."""

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
        **details: str | int | float | bool | None,
    ) -> None:
        """Note an act on a thing in a project, or in the actor's organisation. `action` is `noun.verb`.

        It stands in the log of the organisation it happened to, also where an operator did it.
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
        **details: str | int | float | bool | None,
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
