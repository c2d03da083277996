"""Which operations `torch.compile` fuses, and what a fused kernel reads."""

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from teraflock.workload.trace import DTYPE_BYTES, Tensor, TracedOperation

Key = tuple[str, int]
"""Type and number of elements of a tensor: two views of one tensor have the same."""
LIBRARY: Final = frozenset({"mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "dot", "_grouped_mm"})
READS_TWICE: Final = ("batch_norm", "layer_norm_backward")
"""Operations that need a sum over all rows before they can write the first one."""


def is_library_call(name: str) -> bool:
    base = name.split(".")[0]
    return base in LIBRARY or base.startswith("convolution") or "attention" in base


class Light(msgspec.Struct):
    """One operation that can be fused with its neighbours."""

    operation: TracedOperation
    index: int
    elements: int
    """Of its largest tensor."""
    outputs: list[int]
    """Storages that it allocated."""
    last_uses: list[int]
    """Storages that were freed just after it."""

    @property
    def name(self) -> str:
        return self.operation.name.split(".")[0]


class Reads:
    """The tensors that one kernel reads from memory. `made` has the storages that its run allocated."""

    def __init__(self, bytes_of: Callable[[int], int], key: Callable[[Tensor], Key], made: set[int]) -> None:
        self.tensors: list[Tensor] = []
        self._bytes_of, self._key, self._made = bytes_of, key, made
        self._inside: Counter[int] = Counter()
        """Bytes → how many results of this size the kernel has in registers."""
        self._outside: Counter[Key] = Counter()

    def add(self, each: Light) -> None:
        used_up = Counter(self._bytes_of(number) for number in each.last_uses if number in self._made)
        by_key: dict[Key, list[Tensor]] = {}
        for tensor in each.operation.inputs:
            by_key.setdefault(self._key(tensor), []).append(tensor)
        for key, tensors in by_key.items():
            size = bytes_of(key)
            inside = max(used_up[size], min(1, self._inside[size]))
            # An operation with one input may read a tensor again. Of two, one is new.
            again = self._outside[key] if len(tensors) == 1 or not inside else 0
            new = max(0, len(tensors) - inside - again)
            self._outside[key] += new
            self.tensors += tensors[:new]
            if any(name in each.name for name in READS_TWICE) and 2 * key[1] > each.elements:
                self.tensors += tensors[:1]
        if each.name == "sum":
            self.tensors += each.operation.inputs[:1]
        for number in each.outputs:
            self._inside[self._bytes_of(number)] += 1


def bytes_of(key: Key) -> int:
    return key[1] * DTYPE_BYTES.get(key[0], 4)
