"""The service for operators who act on the instances of any tenant. Each act needs a reason that the tenant can read.

- A stop puts the instance on hold: the tenant cannot start it until the operator lifts the hold.
- Every act writes an audit row in the tenant's organisation and an event in the tenant's project.
- Reading a log is an act, because it shows what is inside an instance.
"""

import os
from collections.abc import Callable
from typing import Final

from teraflock.base.clock import Clock
from teraflock.base.errors import NotFound, ambiguous_name, not_found
from teraflock.base.names import check_reason
from teraflock.fleet import store as fleet
from teraflock.instance.across import store as across
from teraflock.instance.events import operated
from teraflock.instance.model import Located, LocatedFilter, Log
from teraflock.instance.service import InstanceService
from teraflock.storage.database import Database, Transaction
from teraflock.storage.events import record_event
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Project
from teraflock.tenant.organisation.rules import resolve
from teraflock.tenant.project.service import project_in
from teraflock.tenant.project.store import project_of_any_organisation

OPTIONS_MAX: Final = 10


class OperatorService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        instances: InstanceService,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        super().__init__(database, clock, random_bytes)
        self._instances = instances

    def page(
        self,
        actor: Actor,
        *,
        organisation: str = "",
        project: str = "",
        host: str = "",
        phase: str = "",
        after: str = "",
        limit: int,
    ) -> tuple[Located, ...]:
        """Instances of all tenants, oldest first. Organisation, project and host are names or ids."""
        with self._database.read() as tx:
            only = LocatedFilter(
                organisation=resolve(tx, actor, organisation) if organisation else "",
                project=project_in(tx, actor, project).id if project else "",
                host=_host_id(tx, host) if host else "",
                phase=phase,
            )
            return across.located_in_all_projects(tx, only, after=after, limit=limit)

    def find(self, actor: Actor, ref: str, *, organisation: str = "", project: str = "") -> Located:
        """Find an instance by id, or by name if the name is unique."""
        with self._database.read() as tx:
            only = LocatedFilter(
                organisation=resolve(tx, actor, organisation) if organisation else "",
                project=project_in(tx, actor, project).id if project else "",
                ref=ref,
            )
            options = across.located_in_all_projects(tx, only, limit=OPTIONS_MAX)
        if not options:
            raise NotFound(f"No tenant has an instance `{ref[:80]}`", hint="`tera ps --all` lists them")
        if len(options) > 1:
            raise ambiguous_name(
                "instance",
                ref,
                (
                    f"{each.view.instance.id} ({each.organisation_name}:{each.project_name})"
                    for each in options
                ),
            )
        return options[0]

    def stop(self, actor: Actor, found: Located, reason: str) -> None:
        self._instances.stop(actor, self._project(found), found.view.instance.id, reason=check_reason(reason))

    def start(self, actor: Actor, found: Located, reason: str, *, release_only: bool) -> None:
        """Lift the hold and start the instance. With `release_only`, the tenant starts it."""
        project, id = self._project(found), found.view.instance.id
        if release_only:
            self._instances.release(actor, project, id, check_reason(reason))
        else:
            self._instances.start(actor, project, id, reason=check_reason(reason))

    def delete(self, actor: Actor, found: Located, reason: str) -> None:
        self._instances.delete(
            actor, self._project(found), found.view.instance.id, reason=check_reason(reason)
        )

    def log(self, actor: Actor, found: Located, reason: str) -> Log:
        reason, instance, project = check_reason(reason), found.view.instance, self._project(found)

        def work(tx: Transaction) -> None:
            now = self._clock.now()
            self._audit.record(
                tx,
                actor,
                "instance.read_log",
                instance.id,
                project,
                name=instance.name,
                by="operator",
                reason=reason,
            )
            record_event(tx, operated(instance, "read_log", reason, now, self._random_bytes))

        self._database.write(work)  # first, so that no log is shown without a record
        return self._instances.guests.log(project.id, instance.id)

    def _project(self, found: Located) -> Project:
        with self._database.read() as tx:
            project = project_of_any_organisation(tx, found.view.instance.project_id)
        if project is None:
            raise NotFound("Its project was deleted")
        return project


def _host_id(tx: Transaction, ref: str) -> str:
    host = fleet.host(tx, ref)
    if host is None:
        names = [each.name for each in fleet.outlines(tx)]
        raise not_found("host", ref, names, see="`tera host list` lists them")
    return host.id
