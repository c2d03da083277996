"""Values of costs: rates and sizes of hosts, their uses, and the lines that follow from them."""

import msgspec

from teraflock.tenant.model import NO_PROJECT, ProjectId

CARD_PARTS = 1_000_000
"""Cards are counted in millionths: a slice is a part of a card."""


class CostRate(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a host per hour from a time on. A later record replaces earlier ones from its time on."""

    host_id: str
    instance_id: str = ""
    """The instance that a rented host was made for. Empty: an own host."""
    project_id: ProjectId = NO_PROJECT
    from_us: int
    micros_per_hour: int | None
    """None: unknown."""
    currency: str
    recorded_at_us: int


class HostPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a host: everything, or what an instance holds."""

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
    project_id: ProjectId
    from_us: int
    until_us: int
    held: HostPart


class OpenUse(msgspec.Struct, frozen=True, kw_only=True):
    """The last change of an instance that was read, and what it holds since."""

    instance_id: str
    sequence: int = 0
    at_us: int = 0
    began_sequence: int = 0
    host_id: str = ""
    """Empty: it holds nothing."""
    project_id: ProjectId = NO_PROJECT
    from_us: int = 0
    held: HostPart = HostPart()


class CostLine(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The cost of a part of one day of one host, and the instance that it is for."""

    kind: str
    """`use`, `idle`, `rental` or `reversal`."""
    reverses: int = 0
    host_id: str
    day: int
    instance_id: str = ""
    """Empty: the host was idle."""
    project_id: ProjectId = NO_PROJECT
    month: str
    from_us: int
    until_us: int
    currency: str
    micros: int
