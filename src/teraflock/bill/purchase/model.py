"""Values of purchases. A purchase pays for a size of one instance, term after term.

monthly     paid at the start of each month and renewed at the prices of that day, until it is ended
reserved    for one, two or three years at the prices of the day of purchase, minus a discount; paid by the month, or at
            once for less; cannot be ended early
"""

from typing import Literal

import msgspec

from teraflock.base.size import Size
from teraflock.tenant.model import ProjectId

Mode = Literal["monthly", "reserved"]


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    project_id: ProjectId
    instance_id: str
    mode: Mode
    years: int = 0
    upfront: bool = False
    renews: bool = True
    due_us: int
    """When the next term begins, if there is one."""
    ended: bool = False


class Term(msgspec.Struct, frozen=True, kw_only=True):
    purchase_id: str
    sequence: int
    kind: str
    """`bought`, `continued`, `renewed`, `upgraded` or `ended`."""
    instance_id: str
    from_us: int
    until_us: int
    covers: Size
    """What is paid for. What the instance holds beyond it is charged by the second."""
    currency: str
    month_micros: int
    """The price of a whole month."""
    fee_micros: int
    """Due at `from_us`. Below zero: a refund."""


class PurchaseLimit(msgspec.Struct, frozen=True, kw_only=True):
    """How much one member may commit to by purchases in a calendar month."""

    project_id: ProjectId
    member_id: str
    micros: int
    month: str = ""
    """The month of `spent_micros`. A new month starts at zero."""
    spent_micros: int = 0


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """The price of a purchase before it is made."""

    currency: str
    fee_micros: int
    """Charged at once."""
    month_micros: int
    committed_micros: int
    """With all later instalments."""
    from_us: int
    until_us: int
    """The end of the time that is paid."""
