"""Shapes of instances on the wire."""

from typing import Annotated

import msgspec
from msgspec import Meta

from teraflock.base.limits import (
    DISK_BYTES_MAX,
    DISK_BYTES_MIN,
    GPUS_MAX,
    RAM_BYTES_MAX,
    RAM_BYTES_MIN,
    VCPUS_MAX,
)
from teraflock.wire.field import Ref


class ShapeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size of an instance. Fields that you leave out come from `name`, or are in proportion to the GPUs."""

    name: Ref = ""
    """A named shape, such as `cpu-2` or `V100-SXM2x1`; see `GET /v1/shapes`."""
    gpu: Ref = ""
    gpus: Annotated[int, Meta(ge=0, le=GPUS_MAX)] | None = None
    vcpus: Annotated[int, Meta(ge=1, le=VCPUS_MAX)] | None = None
    ram_bytes: Annotated[int, Meta(ge=RAM_BYTES_MIN, le=RAM_BYTES_MAX)] | None = None
    disk_bytes: Annotated[int, Meta(ge=DISK_BYTES_MIN, le=DISK_BYTES_MAX)] | None = None


class SizeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of everything that has a size."""

    gpu: str
    gpus: int
    vcpus: int
    ram_bytes: int
    disk_bytes: int


class ShapeAnswer(SizeAnswer, frozen=True, kw_only=True):
    gpu_name: str


class NamedShapeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    shape: ShapeAnswer
    free: int
    """How many could be launched now with the free capacity of hosts."""


class ShapeList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[NamedShapeAnswer, ...]
