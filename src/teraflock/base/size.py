"""What a machine has: the one value that orders, instances, meters, purchases and bills share."""

import msgspec


class Size(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    gpu: str = ""
    """The catalog's id of the card, or of a slice of one; empty: none."""
    gpus: int = 0
    vcpus: int = 0
    ram_bytes: int = 0
    disk_bytes: int = 0
