"""A granted credit and its remaining amount."""

import msgspec

from teraflock.tenant.model import ProjectId


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    project_id: ProjectId
    reason: str
    """Shown on the bill, for example `sign-up` or `gift`."""
    currency: str
    micros: int
    from_us: int
    """Start of the usage that the credit pays for."""
    expires_us: int
    """End of the usage that the credit pays for, even if it is booked later."""
    drawn_micros: int = 0
    expired: bool = False
    moves: int = 0
    """The number of its ledger entries, which is the key of the next."""

    @property
    def left_micros(self) -> int:
        return 0 if self.expired else self.micros - self.drawn_micros
