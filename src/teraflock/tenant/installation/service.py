"""Creates the installation at its first start, and new operator keys for anyone who has access to its database.

No key exists at that point, so the operator member itself is the actor.
"""

from typing import Final

from teraflock.base.ids import new_id
from teraflock.storage.database import Transaction
from teraflock.tenant.acts import Acts
from teraflock.tenant.installation import store
from teraflock.tenant.key.service import first_key
from teraflock.tenant.member.store import operators_in_all_organisations
from teraflock.tenant.model import Actor, Defaults, Installed, KeyId, MadeKey, Member
from teraflock.tenant.organisation.service import OrganisationService

FIRST_ORGANISATION: Final = "operator"
OPERATOR_NAME: Final = "operator"


class Installation(Acts):
    def install(self) -> Installed:
        """At the first start, create an organisation, its first project and an operator. Later, return the id."""

        def work(tx: Transaction) -> Installed:
            known = store.installation_id(tx)
            if known is not None:
                return Installed(installation_id=known, secret=None)
            now = self._clock.now()
            id = new_id("tera", now, self._random_bytes)
            store.put_installation(tx, id, now)
            organisations = OrganisationService(self._database, self._clock, self._random_bytes)
            made = organisations.insert(tx, FIRST_ORGANISATION, OPERATOR_NAME, Defaults(), is_operator=True)
            self._audit.record(
                tx, _self(made.owner, made.key.key.id), "installation.install", id, made.project
            )
            return Installed(installation_id=id, secret=made.key.secret)

        return self._database.write(work)

    def operator_key(self) -> MadeKey:
        """Create another key for the operator. For anyone with access to the database, if all other keys are lost."""

        def work(tx: Transaction) -> MadeKey:
            operator = operators_in_all_organisations(tx)[0]
            made = first_key(tx, operator, self._clock.now(), self._random_bytes)
            self._audit.record(
                tx, _self(operator, made.key.id), "key.make", made.key.id, None, name=made.key.name
            )
            return made

        return self._database.write(work)


def _self(member: Member, key_id: KeyId) -> Actor:
    """The actor for a member that has no key yet."""
    return Actor(
        key_id=key_id,
        member_id=member.id,
        member_name=member.name,
        organisation_id=member.organisation_id,
        is_operator=member.is_operator,
        roles=member.roles,
    )
