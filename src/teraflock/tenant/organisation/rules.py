"""Finds an organisation by id or name, and checks what its state allows. Reads rows, changes none."""

from typing import Final

from teraflock.base.errors import NotFound, Refused, not_found
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Actor, Organisation, OrganisationId, OrganisationState
from teraflock.tenant.organisation import store

NAMES_MAX: Final = 10_000
"""How many names to search for suggestions."""


class Suspended(Refused):
    """The operator suspended the organisation: nothing starts until it is resumed."""

    code = "suspended"
    remedy = "Ask the operator to resume the organisation. You can still read and delete."


def check_active(tx: Transaction, id: OrganisationId) -> None:
    """Refuse actions that would run something or create a key while the organisation is not active."""
    found = store.organisation(tx, id)
    if found is not None and found.state != OrganisationState.ACTIVE:
        raise Suspended(
            f"The organisation `{found.name}` is {found.state}: {found.state_reason}",
            hint="You cannot start anything until the operator resumes it. You can still read and delete",
        )


def resolve(tx: Transaction, actor: Actor, ref: str | None) -> OrganisationId:
    """The id of the organisation with this id or name; None: the actor's own.

    Only operators learn which names exist. For others, other names are not even looked up.
    """
    if not ref:
        return actor.organisation_id
    if not actor.is_operator:
        own = store.organisation(tx, actor.organisation_id)
        return actor.organisation_id if own and ref == own.name else OrganisationId(ref)
    return find(tx, ref).id


def find(tx: Transaction, ref: str) -> Organisation:
    """Find an organisation by id, even a deleted one, or by name. For operators: suggests similar names."""
    organisation = store.organisation(tx, OrganisationId(ref)) or store.organisation_by_name(tx, ref)
    if organisation is None:
        names = store.names_of_organisations(tx, limit=NAMES_MAX)
        raise not_found("organisation", ref, names, see="`tera org list` lists all organisations")
    return organisation


def existing(organisation: Organisation | None) -> Organisation:
    if organisation is None:
        raise NotFound("There is no such organisation")
    return organisation
