"""What the state of an organisation allows, and which organisation is meant. Reads rows, changes none."""

from typing import Final

from teraflock.base.errors import NotFound, Refused, not_found
from teraflock.storage.database import Transaction
from teraflock.tenant.model import Actor, Organisation, OrganisationId, OrganisationState
from teraflock.tenant.organisation import store

NAMES_MAX: Final = 10_000
"""Searched for suggestions when a name is unknown."""


class Suspended(Refused):
    """The operator suspended the organisation: nothing starts until it is resumed."""

    code = "suspended"
    remedy = "Ask the operator to resume the organisation. You can still read and delete."


def check_active(tx: Transaction, id: OrganisationId) -> None:
    """Refuse whatever would run, or let somebody in, while the organisation is suspended."""
    found = store.organisation(tx, id)
    if found is not None and found.state != OrganisationState.ACTIVE:
        raise Suspended(
            f"The organisation `{found.name}` is {found.state}: {found.state_reason}",
            hint="Nothing can be started until the operator resumes it. You can still read and delete",
        )


def meant(tx: Transaction, actor: Actor, ref: str | None) -> OrganisationId:
    """The organisation that an id or a name stands for; None: the actor's own.

    Only operators are told which names exist. What others write is not looked up, so an answer tells them nothing.
    """
    if not ref:
        return actor.organisation_id
    if not actor.is_operator:
        own = store.organisation(tx, actor.organisation_id)
        return actor.organisation_id if own and ref == own.name else OrganisationId(ref)
    return found(tx, ref).id


def found(tx: Transaction, ref: str) -> Organisation:
    """By id, also one that was deleted, or by name. For operators: an unknown name gets suggestions."""
    organisation = store.organisation(tx, OrganisationId(ref)) or store.organisation_by_name(tx, ref)
    if organisation is None:
        names = store.names_of_organisations(tx, limit=NAMES_MAX)
        raise not_found("organisation", ref, names, see="`tera org list` lists them")
    return organisation


def there(organisation: Organisation | None) -> Organisation:
    if organisation is None:
        raise NotFound("There is no such organisation")
    return organisation
