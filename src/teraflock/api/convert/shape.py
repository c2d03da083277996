"""Shapes on the wire."""

from functools import lru_cache

from msgspec.structs import asdict

from teraflock.base.filling import filled
from teraflock.base.size import Size
from teraflock.catalog.cards import cards_by_id
from teraflock.fleet.shapes import NamedShape
from teraflock.instance.orders import ShapeWish
from teraflock.wire.shape import NamedShapeAnswer, ShapeAnswer, ShapeRequest


def wish_from(shape: ShapeRequest) -> ShapeWish:
    return filled(ShapeWish, shape)


def shape_answer(shape: Size) -> ShapeAnswer:
    return ShapeAnswer(gpu_name=gpu_name(shape.gpu), **asdict(shape))


@lru_cache(maxsize=1024)
def gpu_name(gpu: str) -> str:
    """The display name of a GPU model. A slice has the names of its card and its profile."""
    card, _, profile = gpu.partition(":")
    known = cards_by_id().get(card)
    return " ".join(part for part in (known.name if known else card, profile) if part)


def named_shape_answer(shape: NamedShape) -> NamedShapeAnswer:
    return NamedShapeAnswer(name=shape.name, shape=shape_answer(shape.need), free=shape.free)
