"""Readings of counters of what guests sent out of the house.

What holds, whoever reads how often, twice, late or out of order, and whoever is killed between:
- a counter only grows within its epoch, and another epoch begins at nothing; so what was sent is, over all epochs, the
  highest that was read of each;
- a reading that is not higher than all before it in its epoch tells nothing, and is not kept. So each that is kept says
  what was sent since the one before, and their sum is what was sent, each byte once;
- traffic counts when it is read. What is not read yet waits in the counter, which outlives us.
"""

import msgspec


class MeterReading(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    number: int
    instance_id: str
    sequence: int
    """Of the instance's newest change then: it says where it was, and whose."""
    epoch: str
    bytes: int
    bytes_before: int
    at_us: int

    @property
    def sent_bytes(self) -> int:
        return self.bytes - self.bytes_before
