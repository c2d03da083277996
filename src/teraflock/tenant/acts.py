"""Base class of the services in this folder.

The nouns build on each other in this order: audit, project, member, key, organisation, installation. Every service
may read every store.
"""

from collections.abc import Callable
from os import urandom

from teraflock.base.clock import Clock
from teraflock.base.errors import NotFound
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import Actor, Defaults, OrganisationId
from teraflock.tenant.organisation.store import organisation


class Acts(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes] = urandom,
        defaults: Defaults = Defaults(),  # noqa: B008  # frozen
    ) -> None:
        super().__init__(database, clock, random_bytes)
        self._defaults = defaults

    def _check_there(self, tx: Transaction, actor: Actor, home: OrganisationId) -> None:
        """Raise if an operator names an organisation that does not exist. The actor's own always exists."""
        if home != actor.organisation_id and organisation(tx, home) is None:
            raise NotFound("There is no such organisation")
