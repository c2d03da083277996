"""The house, made at its first start, and the way back in for whoever has its database.

Nobody could ask with a key yet: the operator acts here himself.
"""

from typing import Final

from teraflock.base.ids import new_id
from teraflock.storage.database import Transaction
from teraflock.tenant.acts import Acts
from teraflock.tenant.installation import store
from teraflock.tenant.key.service import first_key
from teraflock.tenant.member.store import operators_in_all_organisations
from teraflock.tenant.model import Actor, Defaults, Installed, KeyId, MadeKey, Member
from teraflock.tenant.organisation.service import Organisations

HOUSE: Final = "house"
OPERATOR_NAME: Final = "operator"


class Installation(Acts):
    def install(self) -> Installed:
        """Make the house at the first start: an organisation, its first project, an operator. Later: say its id."""

        def work(tx: Transaction) -> Installed:
            known = store.installation_id(tx)
            if known is not None:
                return Installed(installation_id=known, secret=None)
            now = self._clock.now()
            id = new_id("tera", now, self._random_bytes)
            store.put_installation(tx, id, now)
            organisations = Organisations(self._database, self._clock, self._random_bytes)
            made = organisations.found(tx, HOUSE, OPERATOR_NAME, Defaults(), is_operator=True)
            self._audit.record(tx, _self(made.owner, made.key.key.id), "house.install", id, made.project)
            return Installed(installation_id=id, secret=made.key.secret)

        return self._database.write(work)

    def operator_key(self) -> MadeKey:
        """One more key for the operator, for whoever has the database itself: every other one may be lost."""

        def work(tx: Transaction) -> MadeKey:
            operator = operators_in_all_organisations(tx)[0]
            made = first_key(tx, operator, self._clock.now(), self._random_bytes)
            self._audit.record(
                tx, _self(operator, made.key.id), "key.make", made.key.id, None, name=made.key.name
            )
            return made

        return self._database.write(work)


def _self(member: Member, key_id: KeyId) -> Actor:
    """A member as the one who acts, before anyone could ask with a key."""
    return Actor(
        key_id=key_id,
        member_id=member.id,
        member_name=member.name,
        organisation_id=member.organisation_id,
        is_operator=member.is_operator,
        roles=member.roles,
    )
