"""Organisations on the wire."""

from teraflock.base.filling import filled
from teraflock.tenant.model import (
    MadeOrganisation,
    Organisation,
)
from teraflock.wire.organisation import OrganisationAnswer, OrganisationMade


def organisation_answer(organisation: Organisation) -> OrganisationAnswer:
    return filled(OrganisationAnswer, organisation)


def organisation_made(made: MadeOrganisation) -> OrganisationMade:
    return OrganisationMade(
        organisation=organisation_answer(made.organisation), owner_id=made.owner.id, key=made.key.secret
    )
