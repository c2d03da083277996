"""A purchase pays for a shape of one instance, term after term.

monthly     paid at the beginning of each month; renewed at the prices of that day, until it is ended
reserved    for one, two or three years at the prices of the day it was bought, less a discount; paid by the month, or
            all at once for less; cannot be ended early
"""

from typing import Literal

import msgspec

from teraflock.base.size import Size

Mode = Literal["monthly", "reserved"]


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    project_id: str
    instance_id: str
    mode: Mode
    years: int = 0
    upfront: bool = False
    renews: bool = True
    due_us: int
    """When the next term begins, if there is to be one."""
    ended: bool = False


class Term(msgspec.Struct, frozen=True, kw_only=True):
    purchase_id: str
    sequence: int
    kind: str
    """bought, continued, renewed, upgraded or ended."""
    instance_id: str
    from_us: int
    until_us: int
    covers: Size
    """What is paid for. What the instance holds beyond it is charged by the second."""
    currency: str
    month_micros: int
    """What a whole month of it costs."""
    fee_micros: int
    """Due at `from_us`; below zero: given back."""


class PurchaseLimit(msgspec.Struct, frozen=True, kw_only=True):
    """What one member may commit to by purchases in a calendar month."""

    project_id: str
    member_id: str
    micros: int
    month: str = ""
    """Of `spent_micros`; another month begins at nothing."""
    spent_micros: int = 0


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a purchase would cost now."""

    currency: str
    fee_micros: int
    """Charged at once."""
    month_micros: int
    committed_micros: int
    """With all instalments to come."""
    from_us: int
    until_us: int
    """Paid up to then."""
