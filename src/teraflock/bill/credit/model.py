"""A grant of credit, and what is left of it."""

import msgspec


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    project_id: str
    reason: str
    """`sign-up`, `gift`, an apology: shown on the bill."""
    currency: str
    micros: int
    from_us: int
    """It pays for what was used from then on …"""
    expires_us: int
    """… and before then, whenever that is booked."""
    drawn_micros: int = 0
    expired: bool = False
    moves: int = 0
    """How many entries of the ledger it has: the key of the next."""

    @property
    def left_micros(self) -> int:
        return 0 if self.expired else self.micros - self.drawn_micros
