"""Organisations on the wire."""

from teraflock.tenant.model import (
    MadeOrganisation,
    Organisation,
)
from teraflock.wire.organisation import OrganisationAnswer, OrganisationMade


def organisation_answer(organisation: Organisation) -> OrganisationAnswer:
    return OrganisationAnswer(
        id=organisation.id,
        name=organisation.name,
        created_at=organisation.created_at,
        state=organisation.state,
        state_reason=organisation.state_reason,
        state_since=organisation.state_since,
    )


def organisation_made(made: MadeOrganisation) -> OrganisationMade:
    return OrganisationMade(
        organisation=organisation_answer(made.organisation), owner_id=made.owner.id, key=made.key.secret
    )
