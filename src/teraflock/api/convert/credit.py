"""Credits on the wire."""

from typing import Final

from teraflock.base.clock import LATEST, microseconds
from teraflock.bill.credit.model import Grant
from teraflock.bill.times import moment
from teraflock.wire.credit import CreditAnswer

_LATEST_US: Final = microseconds(LATEST)


def credit_answer(grant: Grant) -> CreditAnswer:
    return CreditAnswer(
        id=grant.id,
        reason=grant.reason,
        currency=grant.currency,
        micros=grant.micros,
        left_micros=grant.left_micros,
        starts_at=moment(grant.from_us),
        expires_at=None if grant.expires_us > _LATEST_US else moment(grant.expires_us),
        is_expired=grant.expired,
    )
