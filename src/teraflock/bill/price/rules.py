"""Decides when the periods of a new book start to apply."""

from collections.abc import Sequence

from teraflock.base.errors import BadInput
from teraflock.bill.price.book import Draft
from teraflock.bill.price.model import Period


def taken(drafts: Sequence[Draft], *, version: int, not_before_us: int) -> tuple[Period, ...]:
    """The periods that have not ended. One that has started applies from now on: past prices never change."""
    periods = tuple(
        Period(
            version=version,
            from_us=max(draft.from_us, not_before_us),
            until_us=draft.until_us,
            prices=draft.prices,
        )
        for draft in drafts
        if draft.until_us > not_before_us
    )
    if not periods:
        raise BadInput(
            "All periods of this price book are over",
            hint="Prices cannot change in the past. Add a period that ends in the future",
        )
    return periods
