"""BERT-like encoders under `torch.compile`: rewrites attention and the output layer to what Inductor runs.

While transformers is compiled it cannot see that nothing is masked, so it gives attention a mask of ones. With that
mask and with dropout PyTorch has no fused kernel, and computes the scores of all pairs of tokens in float32. The scores
and the mask of the dropout stay in memory until the backward pass, and without autocast also the result of the dropout.
With autocast the products of the backward pass are in 16 bits.

Inductor pads matrices whose rows are not aligned, such as the logits of a vocabulary of 30,522: in the backward pass
there are copies of the logits, and in 16 bits of the weight. Seen on an H200 with BERT, RoBERTa and DistilBERT.
"""

from typing import Final

from teraflock.workload.rewriting import Rewriter
from teraflock.workload.trace import DTYPE_BYTES, Tensor, Trace, TracedOperation

FLOAT: Final = DTYPE_BYTES["f"]
ALIGNED_BYTES: Final = 16
COLUMNS_MIN: Final = 10_000
"""No layer but the output layer is as wide."""


def with_scores(trace: Trace) -> Trace:
    return _Masked(trace).rewritten()


class _Masked(Rewriter):
    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._autocast = "c" in trace.kinds
        self._drops = any(each.name == "native_dropout" for each in trace.operations)

    def operate(self, index: int) -> None:
        operation = self.trace.operations[index]
        if _is_attention(operation):
            (self._backward if "backward" in operation.name else self._forward)(operation)
            return
        copies = self._padded(*operation.inputs) if self._is_padded(operation) else ()
        super().operate(index)
        self.free(*copies)

    def _is_padded(self, operation: TracedOperation) -> bool:
        """Whether it is the product of the gradient of logits and the weight of the output layer."""
        if operation.name != "mm" or not self.trace.has_backward:
            return False
        logits = operation.inputs[0]
        columns = self.expressions[logits.shape[-1]]
        aligned = ALIGNED_BYTES // DTYPE_BYTES[logits.dtype]
        return logits.contiguous and type(columns) is int and columns > COLUMNS_MIN and columns % aligned > 0

    def _padded(self, logits: Tensor, weight: Tensor) -> list[int]:
        """Two copies of the logits, one of which is only short-lived; in 16 bits also a copy of the weight."""
        short, copy = (self.allocate(self.size(logits, DTYPE_BYTES[logits.dtype]), "t") for _ in range(2))
        self.free(short)
        if logits.dtype == "f":
            return [copy]
        return [copy, self.allocate(self.size(weight, DTYPE_BYTES[weight.dtype]), "t")]

    def _forward(self, operation: TracedOperation) -> None:
        query, key, value = (_float(each) for each in operation.inputs[:3])
        scores = _scores(query, key)
        size = self.size(scores, FLOAT)
        kept = [self.allocate(size, "a")]
        self.new_operation("bmm", [query, _transposed(key)], [scores])
        chances = self.allocate(size, "t")
        self.new_operation("_softmax", [scores], [scores])
        if self._drops:
            before, chances = chances, self.allocate(size, "t")
            kept.append(self.allocate(self.size(scores, 1), "a"))
            self.new_operation("native_dropout", [scores], [scores, Tensor("?", scores.shape)])
            self.free(before)
        self.new_operation("bmm", [scores, value], [query])
        if self._autocast or not self.trace.has_backward:
            self.free(chances)
        else:
            kept.append(chances)
        # The sums of the rows are the second output; they live as long as the backward pass needs the scores.
        self.freed_with[len(self.numbers) - len(operation.outputs) + 1] = kept

    def _backward(self, operation: TracedOperation) -> None:
        query, key, value = operation.inputs[1:4]
        if not self._autocast:
            query, key, value = _float(query), _float(key), _float(value)
        pairs = Tensor(query.dtype, _scores(query, key).shape)
        size = self.size(pairs, DTYPE_BYTES[pairs.dtype])
        chances = self.allocate(size, "t")
        self.new_operation("_softmax", [pairs], [pairs])
        self.new_operation("bmm", [_transposed(pairs), query], [value])
        self.free(chances)
        slopes = self.allocate(size, "t")
        self.new_operation("bmm", [query, _transposed(value)], [pairs])
        changed = self.allocate(size, "t")
        self.new_operation("_softmax_backward_data", [pairs, pairs], [pairs])
        self.free(slopes)
        self.new_operation("bmm", [pairs, key], [query])
        self.new_operation("bmm", [_transposed(pairs), query], [key])
        self.free(changed)


def _is_attention(operation: TracedOperation) -> bool:
    causal = bool(operation.attributes and operation.attributes[0])
    return operation.name.startswith("_scaled_dot_product") and not causal


def _scores(query: Tensor, key: Tensor) -> Tensor:
    return Tensor("f", [*query.shape[:3], key.shape[2]])


def _float(tensor: Tensor) -> Tensor:
    return Tensor("f", tensor.shape)


def _transposed(tensor: Tensor) -> Tensor:
    return Tensor(tensor.dtype, [*tensor.shape[:2], tensor.shape[3], tensor.shape[2]], contiguous=False)
