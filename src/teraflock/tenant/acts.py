"""What the acts on every noun here need: a database, the time, new ids, and the audit log beside what they change.

Nouns build on each other: audit, project, member, key, organisation, installation, each on those before it. Their
stores know no acts, so all may read all of them.
"""

from collections.abc import Callable
from os import urandom

from teraflock.base.clock import Clock
from teraflock.base.errors import NotFound
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.service import Audit
from teraflock.tenant.model import Actor, Defaults, OrganisationId
from teraflock.tenant.organisation.store import organisation


class Acts:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        random_bytes: Callable[[int], bytes] = urandom,
        defaults: Defaults = Defaults(),  # noqa: B008  # frozen
    ) -> None:
        self._database = database
        self._clock = clock
        self._random_bytes = random_bytes
        self._defaults = defaults
        self._audit = Audit(clock, random_bytes)

    def _check_there(self, tx: Transaction, actor: Actor, home: OrganisationId) -> None:
        """One's own organisation is there; of others, only operators come to ask."""
        if home != actor.organisation_id and organisation(tx, home) is None:
            raise NotFound("There is no such organisation")
