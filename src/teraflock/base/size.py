"""The size of an instance. Orders, instances, meters, purchases and bills share this value."""

import msgspec


class Size(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    gpu: str = ""
    """The catalog's id of a GPU model or a slice. Empty: no GPU."""
    gpus: int = 0
    vcpus: int = 0
    ram_bytes: int = 0
    disk_bytes: int = 0
