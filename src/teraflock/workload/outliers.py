"""Weights in 8 bits: what bitsandbytes keeps of the inputs of its products.

LLM.int8 keeps every column of an input that has a number above 6, in 16 bits and until the backward pass. Inputs after
a norm have nearly none. The input of the last product of a gated MLP is itself a product: with random weights nearly
all of its columns have one (seen on an H200 for Llama), with trained weights a few. Which it is cannot be known from a
config, so half of them are assumed.

It also keeps each input itself, in a way that gradient checkpointing does not see. So with checkpointing the inputs of
all layers stay until the backward pass of their layer.
"""

from typing import Final

from teraflock.workload.rewriting import Rewriter
from teraflock.workload.trace import DTYPE_BYTES, Mark, Tensor, Trace, TracedOperation

TO_INT8: Final = "to_int8"
COLUMNS_DIVISOR: Final = 2
PRODUCTS: Final = 7
"""Of a layer: query, key, value, output, gate, up, down."""
OWN_INPUT: Final = (0, 3, 4, 6)
"""Of these, the ones whose input is not that of the product before."""


def with_kept_inputs(trace: Trace, *, checkpointing: bool) -> Trace:
    return _Kept(trace, checkpointing=checkpointing).rewritten()


class _Kept(Rewriter):
    def __init__(self, trace: Trace, *, checkpointing: bool) -> None:
        super().__init__(trace)
        self._checkpointing = checkpointing
        self._backward = False
        self._seen = 0
        self._before: TracedOperation | None = None
        self._held: list[list[int]] = []
        """For each product of the forward pass: the storages that stay."""

    def mark(self, mark: int) -> None:
        self._backward = mark == Mark.BACKWARD

    def operate(self, index: int) -> None:
        super().operate(index)
        operation, before = self.trace.operations[index], self._before
        self._before = operation
        if operation.name != TO_INT8:
            return
        place, self._seen = self._seen % PRODUCTS, self._seen + 1
        rows = operation.inputs[0]
        if not self._checkpointing:
            if place == PRODUCTS - 1:
                # Allocated before it: the outputs, the input in float16, and before that the input itself.
                given = len(self.numbers) - len(operation.outputs) - 2
                self.freed_with.setdefault(given, []).append(self._outliers(rows))
        elif self._backward:
            self.free(*self._held.pop())
        else:
            cast = before is not None and before.name.startswith("_to_copy")
            source = before.inputs[0].dtype if cast and before else rows.dtype
            self._held.append(
                [self.allocate(self.size(rows, DTYPE_BYTES[source]), "a")] if place in OWN_INPUT else []
            )
            if place == PRODUCTS - 1:
                self._held[-1].append(self._outliers(rows))

    def _outliers(self, rows: Tensor) -> int:
        whole = self.expressions[self.size(rows, DTYPE_BYTES[rows.dtype])]
        return self.allocate(self.expression(["//", whole, COLUMNS_DIVISOR]), "a")
