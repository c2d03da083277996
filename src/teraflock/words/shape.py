"""Shapes as text."""

from typing import TYPE_CHECKING, Final, Protocol

from teraflock.base.quantities import bytes_text
from teraflock.words.table import Field, Fields

if TYPE_CHECKING:
    from teraflock.wire.shape import NamedShapeAnswer


class HasCards(Protocol):
    """Anything with GPUs: a shape, or a line of a bill."""

    @property
    def gpu(self) -> str: ...

    @property
    def gpus(self) -> int: ...


def cards_text(shape: HasCards) -> str:
    """`2× V100-SXM2`, as in lists of offers."""
    return f"{shape.gpus}× {shape.gpu}" if shape.gpus else ""


FIELDS: "Final[Fields[NamedShapeAnswer]]" = (
    Field("SHAPE", lambda each: each.name),
    Field("GPUS", lambda each: cards_text(each.shape), worth=8),
    Field("VCPUS", lambda each: str(each.shape.vcpus), right=True, worth=6),
    Field("RAM", lambda each: bytes_text(each.shape.ram_bytes), right=True, worth=6),
    Field("DISK", lambda each: bytes_text(each.shape.disk_bytes), right=True, worth=5),
    Field("FREE", lambda each: f"{each.free:,}", right=True),
)
