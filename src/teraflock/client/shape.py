"""Shapes: named sizes of instances, and how many are free."""

from teraflock.client.noun import Noun
from teraflock.wire.shape import NamedShapeAnswer, ShapeList


class Shapes(Noun):
    in_project = False

    def list(self) -> tuple[NamedShapeAnswer, ...]:
        return self._get(ShapeList, "shapes").items
