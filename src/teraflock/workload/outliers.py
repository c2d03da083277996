"""Weights in 8 bits: what bitsandbytes keeps of the inputs of its products.

LLM.int8 keeps every column of an input that has a number above 6, in 16 bits and until the backward pass. Inputs after
a norm have nearly none. The input of the last product of a gated MLP is itself a product, and how many of its columns
have one follows from the width of the model and the number of tokens, as transformers draw the weights: none in a
narrow model, all in a wide one. Trained weights have fewer, so this is a limit.

It also keeps each input itself, in a way that gradient checkpointing does not see. So with checkpointing the inputs of
all layers stay until the backward pass of their layer.
"""

from math import erfc, exp, pi, sqrt
from typing import Final

from teraflock.workload.rewriting import Rewriter
from teraflock.workload.trace import DTYPE_BYTES, Mark, Tensor, Trace, TracedOperation

TO_INT8: Final = "to_int8"
THRESHOLD: Final = 6.0
DRAWN: Final = 0.02
"""The standard deviation of drawn weights. A norm makes the mean square of its output one."""
PARTS: Final = 1000
PRODUCTS: Final = 7
"""Of a layer: query, key, value, output, gate, up, down."""
OWN_INPUT: Final = (0, 3, 4, 6)
"""Of these, the ones whose input is not that of the product before."""
WIDTHS: Final = 6.0
STEPS: Final = 600
"""How far and how finely a normal distribution is summed up."""


def with_kept_inputs(trace: Trace, *, tokens: int, checkpointing: bool) -> Trace:
    return _Kept(trace, tokens=tokens, checkpointing=checkpointing).rewritten()


def share_of_columns(hidden: int, tokens: int, more: float = 0.0) -> float:
    """How many of the columns of `silu(gate) * up` have an outlier. Both factors are normal. `more`: the variance of
    what adapters add to each factor. At first that is nothing: the second matrix of an adapter begins with zeros."""
    spread = sqrt(DRAWN**2 * hidden + more)
    step = 2 * WIDTHS / STEPS
    chance = 0.0
    for place in range(STEPS):
        at = -WIDTHS + (place + 0.5) * step
        gate = at * spread / (1 + exp(-at * spread))
        beyond = erfc(THRESHOLD / abs(gate) / spread / sqrt(2)) if gate else 0.0
        chance += exp(-at * at / 2) / sqrt(2 * pi) * step * beyond
    return float(1 - (1 - chance) ** tokens)


class _Kept(Rewriter):
    def __init__(self, trace: Trace, *, tokens: int, checkpointing: bool) -> None:
        super().__init__(trace)
        self._checkpointing = checkpointing
        self._tokens = tokens
        self._parts = 0
        """Of `PARTS`, the columns with outliers. Known after the first product, whose input has the hidden width."""
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
        if self._seen == 1:
            hidden = self.expressions[rows.shape[-1]]
            assert isinstance(hidden, int)
            self._parts = round(PARTS * share_of_columns(hidden, self._tokens))
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
        return self.allocate(self.expression(["//", ["*", whole, self._parts], PARTS]), "a")
