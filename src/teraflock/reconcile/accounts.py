"""The loop that ends rented machines when their account has reached a spending limit.

load    accounts with a limit, and what their machines cost this month
decide  `over`: which accounts, or which projects of an account, have reached their limit
apply   end their machines: stop them, or delete them where the provider cannot keep their disks
"""

import logging
from collections.abc import Iterable
from typing import Final

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, NotFound, Refused
from teraflock.bill.margin.spending import spent
from teraflock.instance.account import store as accounts
from teraflock.instance.service import InstanceService
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.model import NO_PROJECT, Actor, KeyId, MemberId, Project, ProjectId
from teraflock.tenant.project.store import project_of_any_organisation

LOG: Final = logging.getLogger("teraflock.reconcile")
REASON: Final = "The spending limit of its cloud account is reached"


class AccountLoop:
    def __init__(self, database: Database, clock: Clock, instances: InstanceService) -> None:
        self._database = database
        self._clock = clock
        self._instances = instances

    def turn(self) -> None:
        with self._database.read() as tx:
            over = list(self._over(tx))
            ending = {id: project for each in over for project, id in _running(tx, *each)}
        for instance_id, project in ending.items():
            try:
                self._instances.suspend(_server(project), project, instance_id, REASON)
                LOG.warning("%s is ended: its account has reached its limit", instance_id)
            except (Conflict, NotFound, Refused):
                continue  # it changed meanwhile; the next turn looks again

    def _over(self, tx: Transaction) -> Iterable[tuple[str, ProjectId]]:
        """Accounts, or projects of accounts, that have reached their limit. An empty project means all."""
        now, all_uses = self._clock.now(), accounts.uses(tx)
        for account in accounts.accounts(tx):
            uses = [(use.project_id, use.limit_micros) for use in all_uses if use.account == account.name]
            for project, limit in [(NO_PROJECT, account.limit_micros), *uses]:
                if limit is not None and spent(tx, account, project, now).month_micros >= limit:
                    yield account.name, project


def _running(tx: Transaction, account: str, project_id: ProjectId) -> Iterable[tuple[Project, str]]:
    for instance_id, project in accounts.wanted_running(tx, account):
        found = project_of_any_organisation(tx, project)
        if found is not None and project_id in (NO_PROJECT, project):
            yield found, instance_id


def _server(project: Project) -> Actor:
    return Actor(
        key_id=KeyId(""), member_id=MemberId(""), member_name="account limit", is_operator=True, roles={},
        organisation_id=project.organisation_id,
    )  # fmt: skip
