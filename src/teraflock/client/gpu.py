"""GPU models and their figures."""

from typing import TYPE_CHECKING

from teraflock.client.noun import Noun

if TYPE_CHECKING:
    from teraflock.wire.gpu import GpuShape


class Gpus(Noun):
    in_project = False

    def list(self, name: str = "") -> "tuple[GpuShape, ...]":
        from teraflock.wire.gpu import GpuShape  # imported here: a cold `tera ps` must not load the planner

        return self._get(tuple[GpuShape, ...], "gpus", name=name)
