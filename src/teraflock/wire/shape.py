"""Shapes of instances on the wire."""

from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.wire.field import Ref


class ShapeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size of an instance. Fields that you leave out come from `name`, or are in proportion to the GPUs."""

    name: Ref = ""
    """A named shape, such as `cpu-2` or `V100-SXM2x1`; see `GET /v1/shapes`."""
    gpu: Ref = ""
    gpus: Annotated[int, Meta(ge=0, le=64)] | None = None
    vcpus: Annotated[int, Meta(ge=1, le=1024)] | None = None
    ram_bytes: Annotated[int, Meta(ge=64 << 20, le=64 << 40)] | None = None
    disk_bytes: Annotated[int, Meta(ge=512 << 20, le=1 << 50)] | None = None


class ShapeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    gpu: str
    gpu_name: str
    gpus: int
    vcpus: int
    ram_bytes: int
    disk_bytes: int


class NamedShapeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    shape: ShapeAnswer
    free: int
    """How many could be launched now with the free capacity of hosts."""


class ShapeList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[NamedShapeAnswer, ...]
