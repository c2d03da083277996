"""Values of sign-up."""

from datetime import datetime
from typing import Protocol

import msgspec

from teraflock.storage.database import Transaction
from teraflock.tenant.model import Defaults, OrganisationId, ProjectId


class SignUp(msgspec.Struct, frozen=True, kw_only=True):
    """An organisation that a stranger created."""

    organisation_id: OrganisationId
    address: str
    created_at: datetime


class SignUpTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator offers to those who sign up."""

    quotas: Defaults
    per_day_max: int
    """Organisations per day, from all addresses together."""


class WelcomeGift(Protocol):
    """How a new organisation pays. Prices are not known in this folder."""

    def text(self, tx: Transaction) -> str:
        """The credit with its currency. Empty: none."""

    def give(self, tx: Transaction, project: ProjectId) -> None:
        """Let the project pay in advance, with the credit. Raises if the server has no prices yet."""
