"""How a project pays, on the wire."""

from teraflock.bill.store import Profile
from teraflock.wire.billing import ProfileAnswer


def profile_answer(
    profile: Profile, *, balance: int, owed: int, pending: int, available: int
) -> ProfileAnswer:
    return ProfileAnswer(
        currency=profile.currency,
        pays=profile.pays,
        tax_name=profile.tax_name,
        tax_basis_points=profile.tax_bp,
        customer=profile.customer,
        tax_number=profile.tax_number,
        balance_micros=balance,
        owed_micros=owed,
        pending_micros=pending,
        available_micros=available,
    )
