"""All SQL for sign-ups."""

from datetime import datetime
from typing import Final

from teraflock.base.clock import microseconds
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, number
from teraflock.tenant.model import OrganisationId
from teraflock.tenant.sign_up.model import SignUp

_SIGN_UP: Final = Table("sign_up", SignUp)


def put_sign_up(tx: Transaction, value: SignUp) -> None:
    _SIGN_UP.add(tx, value)


def count_since(tx: Transaction, time: datetime) -> int:
    return number(tx, "SELECT COUNT(*) FROM sign_up WHERE created_at_us >= :time", time=microseconds(time))


def is_signed_up(tx: Transaction, organisation: OrganisationId) -> bool:
    """Whether a stranger created this organisation."""
    found = tx.one("SELECT 1 FROM sign_up WHERE organisation_id = :organisation", organisation=organisation)
    return found is not None
