"""Readings of the counters of outgoing traffic.

Invariants, even if readings are repeated, late or out of order, and if a process is killed in between:
- a counter only grows within an epoch, and a new epoch starts at zero. So the traffic is the sum of the highest
  readings of all epochs;
- a reading that is not higher than all earlier ones of its epoch is not stored. So each stored reading adds what was
  sent since the one before, and every byte counts once;
- traffic counts when it is read. What is not read yet stays in the counter, which survives a restart of the server.
"""

import msgspec


class MeterReading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    number: int
    instance_id: str
    sequence: int
    """The sequence of the instance's newest change at that time. It determines the place and the project."""
    epoch: str
    bytes: int
    bytes_before: int
    at_us: int

    @property
    def sent_bytes(self) -> int:
        return self.bytes - self.bytes_before
