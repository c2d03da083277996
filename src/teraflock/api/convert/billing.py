"""How a project pays, on the wire."""

from teraflock.base.filling import filled
from teraflock.bill.store import Profile
from teraflock.wire.billing import ProfileAnswer


def profile_answer(
    profile: Profile, *, balance: int, owed: int, pending: int, available: int
) -> ProfileAnswer:
    return filled(
        ProfileAnswer,
        profile,
        tax_basis_points=profile.tax_bp,
        balance_micros=balance,
        owed_micros=owed,
        pending_micros=pending,
        available_micros=available,
    )
