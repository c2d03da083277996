"""Credits on the wire."""

from typing import Final

from teraflock.base.clock import LATEST, microseconds
from teraflock.base.filling import filled
from teraflock.bill.credit.model import Grant
from teraflock.bill.times import moment
from teraflock.wire.credit import CreditAnswer

_LATEST_US: Final = microseconds(LATEST)


def credit_answer(grant: Grant) -> CreditAnswer:
    return filled(
        CreditAnswer,
        grant,
        starts_at=moment(grant.from_us),
        expires_at=None if grant.expires_us > _LATEST_US else moment(grant.expires_us),
        is_expired=grant.expired,
    )
