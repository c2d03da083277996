"""What a host costs, what it has, who uses it, and the lines that follow from these."""

import msgspec

CARD_PARTS = 1_000_000
"""Cards are counted in millionths: a slice is its share of a card."""


class CostRate(msgspec.Struct, frozen=True, kw_only=True):
    """What a host costs an hour from a time on. Of two, the one recorded later counts from its time on."""

    host_id: str
    instance_id: str = ""
    """Of a rented host: the instance it was made for. Empty: an own host."""
    project_id: str = ""
    from_us: int
    micros_per_hour: int | None
    """None: not known."""
    currency: str
    recorded_at_us: int


class HostPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a host: all it has, or what an instance holds of it."""

    gpu_parts: int = 0
    vcpus: int = 0
    ram_bytes: int = 0


class HostSize(msgspec.Struct, frozen=True, kw_only=True):
    host_id: str
    from_us: int
    whole: HostPart


class HostUse(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance held of a host."""

    instance_id: str
    sequence: int
    host_id: str
    project_id: str
    from_us: int
    until_us: int
    held: HostPart


class OpenUse(msgspec.Struct, frozen=True, kw_only=True):
    """Where an instance is: the last change that was read, and what it holds since."""

    instance_id: str
    sequence: int = 0
    at_us: int = 0
    began_sequence: int = 0
    host_id: str = ""
    """Empty: it holds nothing."""
    project_id: str = ""
    from_us: int = 0
    held: HostPart = HostPart()


class CostLine(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What a stretch of one day of one host cost us, and whom it served."""

    kind: str
    """`use`, `idle`, `rental` or `reversal`."""
    reverses: int = 0
    host_id: str
    day: int
    instance_id: str = ""
    """Empty: nobody used it."""
    project_id: str = ""
    month: str
    from_us: int
    until_us: int
    currency: str
    micros: int
