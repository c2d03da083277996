"""Loops without modules: their parameters are plain tensors with gradients, and the batch is what meets one first."""

from collections.abc import Callable
from typing import Any
from weakref import ref

from teraflock.workload.tracing.side import unwrapped


class Leaves:
    """What operations say as long as the script has called no module."""

    def __init__(self) -> None:
        self.is_on = True
        self.shape: tuple[int, ...] = ()
        """Of the batch of this step: the first data that met a parameter."""
        self._found: dict[int, Callable[[], Any]] = {}

    def see(self, inputs: list[Any]) -> None:
        leaves = [each for each in inputs if each.requires_grad and each.is_leaf]
        if not leaves:
            return
        for each in leaves:
            self._found[id(each)] = ref(each)
        data = next((each for each in inputs if not each.requires_grad and each.dim()), None)
        if data is not None and not self.shape:
            self.shape = tuple(int(n) if isinstance(n, int) else -1 for n in unwrapped(data).shape)

    def taken(self) -> tuple[int, ...]:
        """The shape of the batch, once for each step."""
        shape, self.shape = self.shape, ()
        return shape

    def parameters(self) -> list[Any]:
        return [each for find in self._found.values() if (each := find()) is not None]
