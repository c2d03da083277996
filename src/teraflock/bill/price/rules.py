"""When the periods of a new book begin to count."""

from collections.abc import Sequence

from teraflock.base.errors import BadInput
from teraflock.bill.price.book import Draft
from teraflock.bill.price.model import Period


def taken(drafts: Sequence[Draft], *, version: int, not_before_us: int) -> tuple[Period, ...]:
    """The periods that are not over. One that has begun counts from now on: the past keeps its prices."""
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
        raise BadInput("All periods of this price book are over", hint="A price never changes the past")
    return periods
